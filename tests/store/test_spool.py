"""The spool: while the store does not answer a node admits what it knows of, and nothing is lost or counted twice."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from sidecar.admission.bookkeeper import Bookkeeper, Reserved
from sidecar.admission.checkpoint import Checkpoint
from sidecar.admission.entries import Refused, ReservationRequest
from sidecar.admission.limits import Limits
from sidecar.admission.recovery import Recovery
from sidecar.admission.spool import Spool, spool_url
from sidecar.responses.marks import mark_of
from sidecar.store import StoreUnavailable
from sidecar.store.migrate import migrate
from tests.store.ledger_kit import PRICE, PRICED, Books, completed, ledger, request
from tests.store.unreliable import Unreliable

LIMITS = Limits(concurrent_requests=3, tokens_per_minute=1_000, period="month", period_tokens=500)


class Node:
    """One worker of a node that spools, and what it shares with the others."""

    def __init__(self, url: str, state: Path, name: str = "w1") -> None:
        self.now = 1000.0
        self.name = name
        self.state = state
        self.store = Unreliable(url)
        self.ledger = ledger(LIMITS, PRICED)
        self.books = Books(url, LIMITS, PRICED)
        migrate(spool_url(state))
        self.spool = Spool(state, ledger(LIMITS, PRICED), self.store, self.ledger, clock=lambda: self.now)
        self.spooled = Books(f"sqlite:///{state}/spool.db", LIMITS, PRICED)
        self.checkpoint = Checkpoint(state, name)
        self.bookkeeper = Bookkeeper(self.store, self.ledger, self.checkpoint, self.spool)
        self.recovery = Recovery(self.store, self.ledger, self.checkpoint, "n1", self.spool)

    def down(self, how: str = "before") -> None:
        """The store does not answer any more."""
        self.store.failing = how  # type: ignore[assignment]
        self.store.healthy = how == "after"

    def up(self) -> None:
        self.store.failing, self.store.healthy = None, True

    async def reserve(self, **changed: Any) -> tuple[ReservationRequest, Reserved]:
        asked = request(worker=self.name, **changed)
        reserved = await self.bookkeeper.reserve(asked)
        assert isinstance(reserved, Reserved), reserved
        return asked, reserved

    async def know(self, organization: str = "org_a") -> None:
        """Serve a request of an organization, and copy what is known of it."""
        asked, reserved = await self.reserve(organization_id=organization)
        await self.bookkeeper.settle(reserved.slot, completed(asked.id))
        await self.copy()

    async def copy(self) -> None:
        """Copy what is known, half a minute later."""
        self.now += 31
        await self.spool.copy_terms()

    def billed(self) -> dict[str, tuple[int, int, str]]:
        """By reservation: the output tokens, the price and the outcome."""
        return {row["id"]: (row["output_tokens"], row["price"], row["outcome"]) for row in self.books.records()}


@pytest.fixture
def node(store_url: str, tmp_path: Path) -> Iterator[Node]:
    yield Node(store_url, tmp_path / "state")


async def test_what_is_admitted_in_an_outage_is_durable_here_and_moved_later(node: Node) -> None:
    await node.know()
    known = node.billed()
    node.down()
    asked, reserved = await node.reserve(end_user="user-1", tags="a,b", stream=True)
    assert node.spooled.open() == 1
    await node.bookkeeper.settle(reserved.slot, completed(asked.id, output_tokens=7, first_token_ms=3, total_ms=9))
    assert (node.spooled.open(), node.checkpoint.used, node.billed()) == (0, frozenset(), known)
    node.up()
    assert await node.spool.move() == 1
    assert node.billed() == {**known, asked.id: (7, PRICE.of(10, 0, 7), "completed")}
    record = node.books.records()[-1]
    assert record["tags"] == "a,b"
    assert (record["end_user"], bool(record["stream"]), record["first_token_ms"], record["total_ms"]) == (
        "user-1",
        True,
        3,
        9,
    )
    assert node.spooled.rows("reservations") == node.spooled.rows("usage_records") == []
    assert node.books.level("quota", "*") == 15 + 17
    assert await node.spool.move() == 0


async def test_a_move_that_is_cut_short_counts_once(node: Node) -> None:
    await node.know()
    node.down()
    asked, reserved = await node.reserve()
    await node.bookkeeper.settle(reserved.slot, completed(asked.id, output_tokens=7))
    known = sum(row[1] for row in node.billed().values())
    for how in ("before", "after"):
        node.down(how)
        with pytest.raises(StoreUnavailable):
            await node.spool.move()
    node.up()
    await node.spool.move()
    assert sum(row[1] for row in node.billed().values()) == known + PRICE.of(10, 0, 7)
    assert (node.books.level("quota", "*"), node.books.level("concurrent", "*")) == (32, 0)


async def test_a_reservation_that_the_store_made_without_an_answer_is_settled_once(node: Node) -> None:
    await node.know()
    node.down("after")
    asked, reserved = await node.reserve()
    assert (node.books.open(), node.spooled.open(), reserved.slot.spooled) == (1, 1, True)
    await node.bookkeeper.settle(reserved.slot, completed(asked.id, output_tokens=7))
    node.up()
    await node.spool.move()
    assert node.billed()[asked.id] == (7, PRICE.of(10, 0, 7), "completed")
    assert (node.books.open(), node.books.level("concurrent", "*"), node.books.level("quota", "*")) == (0, 0, 32)


async def test_a_refusal_here_closes_what_the_store_made_without_an_answer(node: Node) -> None:
    await node.know()
    for _ in range(3):
        await node.reserve()
    node.down()
    for _ in range(3):
        await node.reserve()
    node.down("after")
    refused = await node.bookkeeper.reserve(request(worker="w1"))
    assert isinstance(refused, Refused)
    node.up()
    await node.bookkeeper.close()
    await node.spool.move()
    assert node.books.open() == 3


async def test_a_request_that_was_given_up_is_told_so_when_it_comes_again(node: Node) -> None:
    await node.know()
    for _ in range(3):
        await node.reserve()
    node.down()
    for _ in range(3):
        await node.reserve()
    node.down("after")
    waiting = request(worker="w1")
    assert isinstance(await node.bookkeeper.reserve(waiting), Refused)
    while len(node.checkpoint.used) > 6:
        await asyncio.sleep(0.005)
    # It has waited for a place, and comes again under the same id.
    with pytest.raises(StoreUnavailable, match="given up"):
        await node.bookkeeper.reserve(waiting)
    assert len(node.checkpoint.used) == 6


async def test_limits_hold_here_as_they_were_known(node: Node) -> None:
    node.books.execute(
        "INSERT INTO organizations (id, name, prepaid, created_at) VALUES ('org_p', 'p', :yes, 0)", yes=True
    )
    node.books.execute(f"INSERT INTO accounts VALUES ('org_p', {PRICE.of(10, 0, 90) * 2 - 1}, 0)")
    node.books.execute("INSERT INTO limits (organization_id, model, concurrent_requests) VALUES ('org_a', '*', 2)")
    for organization in ("org_a", "org_p"):
        node.spool.note_organization(organization)
    await node.copy()
    node.down()
    for organization, admitted, code in (("org_a", 2, "concurrency_limited"), ("org_p", 1, "credits_exhausted")):
        for _ in range(admitted):
            await node.reserve(organization_id=organization)
        refused = await node.bookkeeper.reserve(request(organization_id=organization))
        assert isinstance(refused, Refused)
        assert refused.code == code


async def test_a_quota_goes_on_from_where_it_was(node: Node) -> None:
    await node.know()
    node.books.execute("UPDATE balances SET level = 450 WHERE kind = 'quota'")
    await node.copy()
    node.down()
    refused = await node.bookkeeper.reserve(request(worker="w1"))
    assert isinstance(refused, Refused)
    assert refused.code == "quota_exceeded"


async def test_an_organization_that_was_not_copied_is_refused(node: Node) -> None:
    await node.know("org_a")
    node.down()
    with pytest.raises(StoreUnavailable, match="not known to the spool"):
        await node.bookkeeper.reserve(request(organization_id="org_b"))
    await node.reserve(organization_id="org_a")
    await node.bookkeeper.close()
    node.up()
    await node.spool.move()
    assert node.books.open() == 0


async def test_workers_of_a_node_know_the_organizations_of_each_other(node: Node, store_url: str) -> None:
    other = Node(store_url, node.state, "w2")
    await node.know("org_a")
    await other.know("org_b")
    node.down()
    await node.reserve(organization_id="org_b")
    await node.reserve(organization_id="org_a")


async def test_nothing_is_copied_over_what_waits_to_be_moved(node: Node) -> None:
    await node.know()
    node.down()
    asked, reserved = await node.reserve()
    node.up()
    node.books.execute("UPDATE balances SET level = 0 WHERE kind = 'quota'")
    await node.copy()
    assert node.spooled.level("quota", "*") == 115
    await node.bookkeeper.settle(reserved.slot, completed(asked.id))
    await node.spool.move()
    await node.copy()
    assert node.spooled.level("quota", "*") == 15


async def test_a_worker_that_dies_in_an_outage_is_settled_here_to_the_last_token(node: Node, store_url: str) -> None:
    await node.know()
    known = set(node.billed())
    node.down()
    streaming, reserved = await node.reserve()
    reserved.slot.mark[0] = mark_of(5, 0)
    silent, _ = await node.reserve()
    node.checkpoint.close()
    other = Node(store_url, node.state, "w2")
    other.down()
    with pytest.raises(StoreUnavailable):
        await other.recovery.settle_dead()
    assert other.spooled.open() == 0
    other.up()
    # Moved before the file is looked at again, and looked at again after that.
    await other.spool.move()
    await other.recovery.settle_dead()
    await other.spool.move()
    assert {id: row for id, row in other.billed().items() if id not in known} == {
        streaming.id: (5, PRICE.of(10, 0, 5), "worker_lost"),
        silent.id: (0, 0, "worker_lost"),
    }
    assert [path.stem for path in node.state.glob("*.slots")] == ["w2"]
    assert other.books.open() == 0


async def test_one_worker_moves_at_a_time(node: Node, store_url: str) -> None:
    await node.know()
    node.down()
    asked, reserved = await node.reserve()
    await node.bookkeeper.settle(reserved.slot, completed(asked.id))
    node.up()
    other = Node(store_url, node.state, "w2")
    moved: list[int] = []
    perform = node.spool._adopt.perform

    def hold(connection: Connection, items: Any) -> Any:
        moved.append(asyncio.run(other.spool.move()))
        return perform(connection, items)

    node.spool._adopt.perform = hold  # type: ignore[method-assign]
    assert await node.spool.move() == 1
    assert moved == [0]


async def test_nobody_else_may_read_it(node: Node) -> None:
    await node.know()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in node.state.iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(node.state.stat().st_mode) == 0o700
