"""What waits together is committed together, and nothing that one piece of work does falls on another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, insert
from sqlalchemy.exc import IntegrityError

from sidecar.store import Store, StoreUnavailable
from sidecar.store.store import MOST_IN_A_TRANSACTION, MOST_WAITING
from sidecar.store.tables import organizations
from tests.store.kinds import Call, Gate, Insert, count, names, row, settle

CALL = Call()


async def held(store: Store) -> tuple[Gate, asyncio.Task[object]]:
    """A store in the middle of a transaction."""
    gate = Gate()
    running = asyncio.create_task(store.run(CALL, gate))
    await gate.entered()
    return gate, running


async def outcomes(store: Store, work: Sequence[tuple[Any, Any]]) -> list[Any]:
    """What each piece of work comes to, when all of them wait before the first is taken."""
    gate, running = await held(store)
    tasks = [asyncio.create_task(store.run(operation, item)) for operation, item in work]
    await settle()
    gate.open()
    await running
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_waits_shares_a_transaction(store: Store) -> None:
    operation = Insert()
    items = [f"o{number}" for number in range(MOST_IN_A_TRANSACTION)]
    assert await outcomes(store, [(operation, item) for item in items]) == items
    assert store.transactions == 2
    assert await store.read(names) == {"gate", *items}


@pytest.mark.parametrize("load", [1, 3])
async def test_the_number_of_transactions_follows_the_bound_and_not_the_load(store: Store, load: int) -> None:
    operation = Insert()
    items = [f"o{number}" for number in range(load * MOST_IN_A_TRANSACTION)]
    await outcomes(store, [(operation, item) for item in items])
    assert store.transactions == 1 + load


async def test_who_is_patient_goes_along_with_who_is_not(store: Store) -> None:
    operation = Insert()
    patient = [asyncio.create_task(store.run(operation, f"p{number}", 60.0)) for number in range(3)]
    await settle()
    assert store.transactions == 0
    assert await store.run(operation, "now") == "now"
    assert await asyncio.gather(*patient) == ["p0", "p1", "p2"]
    assert store.transactions == 1


async def test_patience_ends(store: Store) -> None:
    assert await store.run(Insert(), "late", 0.01) == "late"


async def test_who_is_patient_is_not_forgotten_at_the_end(store: Store) -> None:
    patient = asyncio.create_task(store.run(Insert(), "p", 60.0))
    await settle()
    await store.close()
    assert await patient == "p"


async def test_kinds_share_a_transaction_where_only_one_can_write(store: Store, store_url: str) -> None:
    kinds = [Insert(), Insert(), Insert()]
    work = [(kinds[number % 3], f"o{number}") for number in range(30)]
    assert await outcomes(store, work) == [item for _, item in work]
    assert store.transactions == (2 if store_url.startswith("sqlite") else 4)


async def test_kinds_are_performed_in_the_order_of_their_coming(store: Store) -> None:
    order: list[str] = []

    class Noting:
        def __init__(self, name: str) -> None:
            self.name = name

        def perform(self, connection: Connection, items: Sequence[int]) -> Sequence[int]:
            order.append(f"{self.name}{list(items)}")
            return items

    first, second = Noting("first"), Noting("second")
    await outcomes(store, [(first, 1), (second, 2), (first, 3), (second, 4)])
    assert order == ["first[1, 3]", "second[2, 4]"]


def too_large(connection: Connection) -> None:
    connection.execute(insert(organizations), row("too large", created_at=2**70))


def faulty(connection: Connection) -> None:
    connection.execute(insert(organizations), row("faulty"))
    raise LookupError("a fault of its own")


def returned(connection: Connection) -> object:
    return PermissionError("refused")


def twice(connection: Connection) -> None:
    connection.execute(insert(organizations), row("gate"))


@pytest.mark.parametrize(
    ("poison", "expected"),
    [(twice, IntegrityError), (too_large, Exception), (faulty, LookupError), (returned, PermissionError)],
)
async def test_an_item_that_cannot_be_done_fails_alone(
    store: Store, poison: Callable[[Connection], object], expected: type[Exception]
) -> None:
    operation = Insert()
    before, failed, after, other = await outcomes(
        store, [(operation, "before"), (CALL, poison), (operation, "after"), (CALL, count)]
    )
    assert (before, after) == ("before", "after")
    assert isinstance(failed, expected)
    assert not isinstance(failed, StoreUnavailable)
    assert isinstance(other, int)
    assert await store.read(names) == {"gate", "before", "after"}
    assert store.healthy


async def test_an_operation_that_forgets_an_item_is_found_out(store: Store) -> None:
    class Forgetful:
        def perform(self, connection: Connection, items: Sequence[str]) -> Sequence[str]:
            return []

    with pytest.raises(ValueError, match="0 results for 1 items"):
        await store.run(Forgetful(), "item")


async def test_what_nobody_waits_for_any_more_is_not_begun(store: Store) -> None:
    gate, running = await held(store)
    abandoned = asyncio.create_task(store.run(Insert(), "abandoned"))
    await settle()
    abandoned.cancel()
    await asyncio.gather(abandoned, return_exceptions=True)
    gate.open()
    await running
    await store.run(Insert(), "later")
    assert await store.read(names) == {"gate", "later"}


async def test_a_full_line_refuses_at_once(store: Store) -> None:
    gate, running = await held(store)
    tasks = [asyncio.create_task(store.run(CALL, lambda _: "done")) for _ in range(MOST_WAITING)]
    await settle()
    with pytest.raises(StoreUnavailable, match=f"{MOST_WAITING} wait"):
        await store.run(Insert(), "one too many")
    gate.open()
    await running
    assert await asyncio.gather(*tasks) == ["done"] * MOST_WAITING
    assert await store.read(names) == {"gate"}


async def test_a_caller_waits_for_no_longer_than_the_timeout(store_url: str) -> None:
    store = Store(store_url, timeout=0.5)
    gate, running = await held(store)
    with pytest.raises(StoreUnavailable, match=r"no answer within 0\.5 s"):
        await store.run(Insert(), "late")
    with pytest.raises(StoreUnavailable):
        await running
    gate.open()
    await store.close()


async def test_closing_does_what_waits_and_takes_nothing_more(store: Store, store_url: str) -> None:
    operation = Insert()
    gate, running = await held(store)
    tasks = [asyncio.create_task(store.run(operation, f"o{number}")) for number in range(10)]
    await settle()
    closing = asyncio.create_task(store.close())
    await settle()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.run(operation, "too late")
    gate.open()
    await closing
    await running
    assert await asyncio.gather(*tasks) == [f"o{number}" for number in range(10)]
    again = Store(store_url)
    assert await again.read(count) == 11
    await again.close()


async def test_closing_a_store_that_hangs_ends_in_time(store_url: str) -> None:
    store = Store(store_url, timeout=0.2)
    gate, running = await held(store)
    async with asyncio.timeout(30):
        await store.close()
    gate.open()
    await asyncio.gather(running, return_exceptions=True)


async def test_who_reads_waits_for_no_writer_and_sees_what_is_committed(store: Store) -> None:
    gate, running = await held(store)
    assert await store.read(names) == set()
    gate.open()
    await running
    assert await store.read(names) == {"gate"}


async def test_a_query_sees_one_state_of_the_store(store: Store) -> None:
    loop = asyncio.get_running_loop()

    def twice_counted(connection: Connection) -> tuple[int, int]:
        before = count(connection)
        asyncio.run_coroutine_threadsafe(store.run(Insert(), "meanwhile"), loop).result(60)
        return before, count(connection)

    assert await store.read(twice_counted) == (0, 0)
    assert await store.read(count) == 1


async def test_a_query_writes_nothing(store: Store) -> None:
    with pytest.raises(StoreUnavailable, match=r"read.?only"):
        await store.read(lambda connection: Insert().perform(connection, ["written"]))
    assert await store.read(count) == 0


async def test_a_querys_own_fault_is_its_callers(store: Store) -> None:
    with pytest.raises(LookupError):
        await store.read(faulty_query)
    assert store.healthy


def faulty_query(connection: Connection) -> None:
    raise LookupError
