"""One worker's reservations and settlements, on a store that fails before or after it has committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from sidecar.admission.bookkeeper import Bookkeeper, Reserved
from sidecar.admission.checkpoint import Checkpoint, claim_dead
from sidecar.admission.entries import Refused, ReservationRequest, Settled
from sidecar.admission.limits import Limits
from sidecar.admission.reconcile import reconcile
from sidecar.store import StoreUnavailable, connect
from tests.store.ledger_kit import PRICE, PRICED, Books, completed, ledger, request
from tests.store.unreliable import Unreliable

ONE = Limits(concurrent_requests=1)


class Worker:
    """A bookkeeper with its parts."""

    def __init__(self, url: str, state: Path, defaults: Limits | None = None) -> None:
        self.store = Unreliable(url)
        self.books = Books(url)
        self.checkpoint = Checkpoint(state, "w1")
        self.bookkeeper = Bookkeeper(self.store, ledger(defaults, PRICED), self.checkpoint)

    async def reserve(self, **changed: Any) -> tuple[ReservationRequest, Reserved]:
        asked = request(**changed)
        reserved = await self.bookkeeper.reserve(asked)
        assert isinstance(reserved, Reserved)
        return asked, reserved

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.005)


@pytest.fixture
def worker(store_url: str, tmp_path: Path) -> Iterator[Worker]:
    yield Worker(store_url, tmp_path / "state")


async def test_a_reservation_has_a_slot_until_it_is_settled(worker: Worker) -> None:
    asked, reserved = await worker.reserve()
    assert reserved.slot.read().id == asked.id
    assert worker.books.open() == 1
    settled = await worker.bookkeeper.settle(reserved.slot, completed(asked.id))
    assert settled == Settled(PRICE.of(10, 0, 5), known=True)
    assert (worker.books.open(), worker.checkpoint.used) == (0, frozenset())
    await worker.bookkeeper.close()
    assert not worker.checkpoint.path.exists()


async def test_what_is_refused_has_no_slot(store_url: str, tmp_path: Path) -> None:
    worker = Worker(store_url, tmp_path, ONE)
    await worker.reserve()
    assert isinstance(await worker.bookkeeper.reserve(request()), Refused)
    assert len(worker.checkpoint.used) == 1


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_reservation_that_nobody_answered_for_ends_when_the_store_answers(
    worker: Worker, when: Literal["before", "after"]
) -> None:
    worker.store.failing = when
    asked = request()
    with pytest.raises(StoreUnavailable):
        await worker.bookkeeper.reserve(asked)
    assert len(worker.checkpoint.used) == 1
    worker.store.failing = None
    await worker.until(lambda: not worker.checkpoint.used)
    assert worker.books.open() == 0
    assert sum(record["price"] for record in worker.books.records()) == 0
    # It cannot be made any more by a transaction that was on its way.
    with pytest.raises(Exception, match="given up"):
        worker.books.book(asked)


async def test_a_client_that_leaves_while_the_store_commits_leaves_nothing_open(worker: Worker) -> None:
    worker.store.held = asyncio.Event()
    reserving = asyncio.create_task(worker.bookkeeper.reserve(request()))
    await asyncio.wait_for(worker.store.committed.wait(), 5)
    assert worker.books.open() == 1
    reserving.cancel()
    worker.store.held = None
    await worker.until(lambda: not worker.checkpoint.used)
    assert worker.books.open() == 0
    assert [record["outcome"] for record in worker.books.records()] == ["client_gone"]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_settlement_is_tried_until_the_store_answers_and_counts_once(
    worker: Worker, when: Literal["before", "after"]
) -> None:
    asked, reserved = await worker.reserve()
    worker.store.failing = when
    before = worker.store.attempts
    settling = asyncio.create_task(worker.bookkeeper.settle(reserved.slot, completed(asked.id)))
    await worker.until(lambda: worker.store.attempts >= before + 3)
    assert reserved.slot.read().end == completed(asked.id)
    worker.store.failing = None
    assert await asyncio.wait_for(settling, 5) == Settled(PRICE.of(10, 0, 5), known=True)
    assert [record["output_tokens"] for record in worker.books.records()] == [5]
    assert worker.checkpoint.used == frozenset()


async def test_a_settlement_outlasts_a_fault_of_a_moment(worker: Worker) -> None:
    asked, reserved = await worker.reserve()
    worker.store.failing = "fault"
    before = worker.store.attempts
    settling = asyncio.create_task(worker.bookkeeper.settle(reserved.slot, completed(asked.id)))
    await worker.until(lambda: worker.store.attempts > before)
    worker.store.failing = None
    assert await asyncio.wait_for(settling, 5) == Settled(PRICE.of(10, 0, 5), known=True)
    assert worker.checkpoint.used == frozenset()


async def test_a_fault_that_stays_leaves_the_settlement_to_those_who_come_after(worker: Worker) -> None:
    asked, reserved = await worker.reserve()
    worker.store.failing = "fault"
    before = worker.store.attempts
    with pytest.raises(ArithmeticError):
        await asyncio.wait_for(worker.bookkeeper.settle(reserved.slot, completed(asked.id)), 10)
    assert worker.store.attempts == before + 5
    await worker.bookkeeper.close()
    (dead,) = claim_dead(worker.checkpoint.path.parent)
    assert [left.end for left in dead.left] == [completed(asked.id)]
    dead.release()


async def test_at_a_stop_what_the_store_does_not_take_is_left_in_the_file(worker: Worker, tmp_path: Path) -> None:
    asked, reserved = await worker.reserve()
    worker.store.failing = "before"
    settling = asyncio.create_task(worker.bookkeeper.settle(reserved.slot, completed(asked.id)))
    await worker.until(lambda: worker.store.attempts >= 2)
    await worker.bookkeeper.close()
    assert await asyncio.wait_for(settling, 5) is None
    (dead,) = claim_dead(worker.checkpoint.path.parent)
    assert [left.end for left in dead.left] == [completed(asked.id)]
    dead.release()


async def test_what_an_attempt_has_cost_is_given_back_once(worker: Worker) -> None:
    asked, reserved = await worker.reserve()
    await worker.bookkeeper.settle(reserved.slot, completed(asked.id))
    # Another is settled by others, for a worker that only seems dead.
    others = Books(worker.books.url, prices=PRICED)
    lost = others.admit()
    others.book(completed(lost.id, final=False))
    assert sum(record["price"] for record in others.records()) == 2 * PRICE.of(10, 0, 5)
    for _ in range(2):
        await worker.bookkeeper.give_back([asked.id, lost.id, "never-made"])
    others.book(completed(lost.id, output_tokens=9))
    records = others.records()
    assert [record["outcome"] for record in records] == ["completed", "completed", "given_back", "given_back"]
    assert {sum(record[name] for record in records) for name in ("price", "input_tokens", "output_tokens")} == {0}
    with connect(others.url) as connection:
        assert list(reconcile(connection, open_seconds=60)) == []
