"""The ledger of a local stack: what its tests set in it, and what they read from it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from sidecar.admission.reconcile import Finding, reconcile
from sidecar.store import connect
from stack.local import LocalStack
from tests.e2e.client import eventually


class LocalLedger:
    """The store of ``stack``: at ``url``, or in the SQLite file that it has by default."""

    def __init__(self, stack: LocalStack, url: str | None = None) -> None:
        self.file = stack.run_dir / "state" / "ledger.db"
        self._url = url or f"sqlite:///{self.file}"

    def execute(self, sql: str, **values: Any) -> None:
        with connect(self._url) as connection:
            connection.execute(text(sql), values)

    def rows(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        with connect(self._url) as connection:
            return [row._asdict() for row in connection.execute(text(sql), values)]

    def ids(self) -> set[str]:
        """The reservations that are settled."""
        return {row["id"] for row in self.rows("SELECT id FROM usage_records")}

    def findings(self) -> list[Finding]:
        """What does not agree in it."""
        with connect(self._url) as connection:
            return list(reconcile(connection, open_seconds=3600))

    def limit(self, model: str, **limits: Any) -> None:
        """Limit every organization on ``model``; workers may go on for three seconds with what they know."""
        columns = ", ".join(("organization_id", "model", *limits))
        values = ", ".join(f":{name}" for name in limits)
        self.execute(f"INSERT INTO limits ({columns}) VALUES ('*', :model, {values})", model=model, **limits)

    async def record(self, request_id: str) -> dict[str, Any]:
        """The usage record of a request, once it is settled."""
        sql = "SELECT * FROM usage_records WHERE request_id = :id"
        (record,) = await eventually(lambda: self.rows(sql, id=request_id), 30)
        return dict(record)

    async def settled(self) -> None:
        """Wait until no reservation is open."""
        await eventually(lambda: not self.rows("SELECT id FROM reservations WHERE settled_at IS NULL"), 30)


async def billed_once(ledger: LocalLedger, answered: str, earlier_outcome: str) -> None:
    """Of the request ``answered`` and the one before it, which had another outcome, one has cost something."""

    def records() -> list[dict[str, Any]]:
        return ledger.rows("SELECT id, outcome, input_tokens, output_tokens FROM usage_records ORDER BY position")

    await eventually(lambda: answered in ledger.ids())
    given_back = await eventually(lambda: [row for row in records() if row["outcome"] == "given_back"])
    earlier = given_back[-1]["id"].removesuffix("-correction")
    mine = [row for row in records() if row["id"].removesuffix("-correction") == earlier]
    assert [row["outcome"] for row in mine] == [earlier_outcome, "given_back"]
    assert mine[0]["input_tokens"] > 0
    assert [sum(row[name] for row in mine) for name in ("input_tokens", "output_tokens")] == [0, 0]
    assert ledger.findings() == []
