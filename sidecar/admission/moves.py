"""What is moved from a spool to the store: a reservation that is settled, and its settlement, together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, select

from sidecar.admission import statements
from sidecar.admission.bill import COUNTS
from sidecar.admission.entries import TOKEN_COUNTS, Outcome, Settlement
from sidecar.admission.ledger import Ledger
from sidecar.admission.reservation import AS_ASKED
from sidecar.store.tables import reservations, usage_records

_KEPT = tuple(name for name in (*AS_ASKED, "created_at", "image_bytes") if name != "tokens")
_END = ("outcome", "first_token_ms", "total_ms", "attempts", "price_terms")
_RECORD = [usage_records.c[name].label(f"used_{name}") for name in COUNTS]
_SETTLED = (
    select(reservations, *(usage_records.c[name] for name in _END), *_RECORD)
    .select_from(reservations.outerjoin(usage_records, usage_records.c.id == reservations.c.id))
    .where(reservations.c.settled_at.is_not(None))
    .order_by(reservations.c.settled_at, reservations.c.id)
)


@dataclass(frozen=True, slots=True)
class Moved:
    """``reservation`` is its row in the store; ``None`` where it was given up before it was made."""

    reservation: Mapping[str, object] | None
    settlement: Settlement


def read_settled(connection: Connection, most: int) -> list[Moved]:
    """The first ``most`` that a spool has settled."""
    return [_moved(row) for row in connection.execute(_SETTLED.limit(most))]


class Adopt:
    """The operation that books in the store what was settled in a spool. The second time is without effect.

    Rates and concurrent requests are of the time when they were used: they were judged there. Quotas and credits are
    charged here.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def perform(self, connection: Connection, items: Sequence[Moved]) -> Sequence[Outcome | Exception]:
        """Make the reservations that are not there, and settle them all."""
        ids = sorted({moved.settlement.id for moved in items})
        found = {row.id for row in statements.LOCK_RESERVATIONS.run(connection, [{"id": id} for id in ids])}
        rows = [moved.reservation for moved in items if moved.reservation and moved.settlement.id not in found]
        statements.ADD_RESERVATIONS.run(connection, rows)
        return self._ledger.perform(connection, [moved.settlement for moved in items])


class Forget:
    """The operation that removes from a spool what the store has."""

    def perform(self, connection: Connection, items: Sequence[str]) -> Sequence[None]:
        """Remove the reservations of these ids, and their records."""
        connection.execute(delete(usage_records).where(usage_records.c.id.in_(items)))
        connection.execute(delete(reservations).where(reservations.c.id.in_(items)))
        return [None] * len(items)


def _moved(row: Row[Any]) -> Moved:
    if row.outcome is None:
        return Moved(None, Settlement(row.id, "client_gone", begun=False, final=False))
    counts = {name: getattr(row, f"used_{name}") for name in TOKEN_COUNTS}
    settlement = Settlement(
        row.id,
        row.outcome,
        begun=any(counts.values()),
        **counts,
        generated_tokens=row.used_output_tokens,
        image_bytes=row.used_image_bytes,
        first_token_ms=row.first_token_ms,
        total_ms=row.total_ms,
        searches=json.loads(row.price_terms).get("searches", 0),
        attempts=row.attempts,
    )
    return Moved(_row(row), settlement)


def _row(row: Row[Any]) -> dict[str, object]:
    """The reservation for the store: it takes nothing, and what it used counts where its quotas are kept."""
    kept = {name: getattr(row, name) for name in _KEPT}
    quotas = [word for word in row.taken.split() if word.startswith("quota:")]
    return {**kept, "tokens": 0, "hold": 0, "taken": " ".join(quotas), "settled_at": None}
