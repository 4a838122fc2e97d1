"""Workers that lease: who has a slice waits for nobody, no limit is overdrawn, and what the dead held comes back."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from sidecar.admission.balances import Key, Limit
from sidecar.admission.beats import AdoptWorkers, ForgetWorkers, read_beats
from sidecar.admission.buckets import MICRO
from sidecar.admission.checkpoint import Checkpoint
from sidecar.admission.entries import Admitted, Entry, Outcome, Refused, ReservationRequest
from sidecar.admission.leases import most
from sidecar.admission.ledger import Ledger
from sidecar.admission.lessee import Lessee, ReturnLeases
from sidecar.admission.limits import Limits
from sidecar.admission.reconcile import reconcile
from sidecar.admission.recovery import Recovery
from sidecar.admission.terms import TermsReader
from sidecar.store import Store, connect
from sidecar.store.engine import open_engine, sqlite_file
from tests.store.ledger_kit import FREE, MODEL, Books, completed, request, statements_of

SECONDS = 5
SECOND = 1_000_000
NODES = 8
LIMITS = Limits(
    requests_per_minute=2400,
    tokens_per_minute=240_000,
    concurrent_requests=800,
    period="month",
    period_tokens=10**7,
)
KINDS = ("concurrent", "quota", "requests", "tokens")


class Clock:
    """The store's, which goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 1_796_126_400 * SECOND

    def __call__(self, connection: Connection) -> int:
        return self.now


class Node:
    """A worker that leases, one transaction for each call."""

    def __init__(self, url: str, name: str, clock: Clock, limits: Limits = LIMITS) -> None:
        self.engine = open_engine(url, "write", 30)
        self.lessee = Lessee(name, SECONDS)
        self.ledger = Ledger(FREE, TermsReader(limits, seconds=0), clock, self.lessee)
        self.statements: list[str] = []

    def book(self, *entries: Entry) -> list[Outcome | Exception]:
        with self.engine.begin() as connection:
            self.statements = statements_of(connection)
            return list(self.ledger.perform(connection, entries))

    def admit(self) -> ReservationRequest:
        asked = request(worker=self.lessee.worker)
        (outcome,) = self.book(asked)
        assert isinstance(outcome, Admitted), outcome
        return asked

    @property
    def locked(self) -> bool:
        """Whether the last transaction locked balances."""
        return any("JOIN balances" in statement for statement in self.statements)


@pytest.fixture
def books(store_url: str) -> Books:
    return Books(store_url, LIMITS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def nodes(store_url: str, clock: Clock) -> Iterator[list[Node]]:
    nodes = [Node(store_url, f"w{number}", clock) for number in range(NODES)]
    yield nodes
    for node in nodes:
        node.engine.dispose()


def leased(books: Books) -> Counter[str]:
    levels: Counter[str] = Counter()
    for row in books.rows("leases"):
        levels[row["kind"]] += row["level"]
    return levels


def levels(books: Books) -> dict[str, int]:
    return {row["kind"]: row["level"] for row in books.rows("balances")}


def give_back(url: str, clock: Clock, *lessees: Lessee) -> None:
    with connect(url) as connection:
        ReturnLeases(clock).perform(connection, lessees)


def findings(url: str) -> list[Any]:
    with connect(url) as connection:
        return list(reconcile(connection, open_seconds=10**9))


def test_the_second_use_within_the_time_takes_a_lease_and_the_third_needs_no_balance(
    books: Books, nodes: list[Node]
) -> None:
    node = nodes[0]
    node.admit()
    assert (node.locked, leased(books)) == (True, Counter())
    second = node.admit()
    assert node.locked
    assert set(leased(books)) == set(KINDS)
    before = levels(books), leased(books)
    third = node.admit()
    assert not node.locked
    node.book(completed(second.id), completed(third.id))
    assert not node.locked
    # Both came back from a reservation of 100 tokens to the 15 that were used; one of them had been taken from the row.
    assert levels(books) == before[0]
    assert leased(books) - before[1] == Counter(concurrent=1, quota=70, tokens=70 * MICRO)
    assert before[1] - leased(books) == Counter(requests=MICRO)
    assert findings(books.url) == []


def test_a_balance_that_is_seldom_used_is_not_leased(books: Books, nodes: list[Node], clock: Clock) -> None:
    for _ in range(3):
        nodes[0].admit()
        clock.now += (SECONDS + 1) * SECOND
    assert books.rows("leases") == []


def test_who_has_a_lease_does_not_wait_for_who_holds_the_balance(postgres_url: str, clock: Clock) -> None:
    books, node = Books(postgres_url), Node(postgres_url, "w1", clock)
    node.admit(), node.admit()
    with connect(postgres_url) as other:
        other.execute(text("SELECT * FROM balances FOR UPDATE"))
        asked = node.admit()
        node.book(completed(asked.id))
        assert books.open() == 2
    node.engine.dispose()


def test_no_limit_is_overdrawn_and_no_more_lies_idle_than_is_said(
    books: Books, nodes: list[Node], clock: Clock
) -> None:
    """All that wants more than there is: what is admitted and what lies in leases together are the limit."""
    opened: list[ReservationRequest] = []
    refused = {node.lessee.worker: False for node in nodes}
    admitted_by_lease = 0
    while not all(refused.values()):
        for node in nodes:
            asked = [request(worker=node.lessee.worker) for _ in range(3)]
            outcomes = node.book(*asked)
            opened += [one for one, outcome in zip(asked, outcomes, strict=True) if isinstance(outcome, Admitted)]
            refused[node.lessee.worker] |= any(isinstance(outcome, Refused) for outcome in outcomes)
            admitted_by_lease += not node.locked
    assert admitted_by_lease > NODES
    idle, bound = leased(books), {kind: NODES * most(limit_of(kind), SECONDS) for kind in KINDS}
    assert len(opened) <= 800
    assert levels(books)["concurrent"] == len(opened) + idle["concurrent"] <= 800
    assert levels(books)["quota"] == sum(one.tokens for one in opened) + idle["quota"]
    assert all(idle[kind] <= bound[kind] for kind in KINDS)
    assert 800 - len(opened) <= bound["concurrent"]
    assert findings(books.url) == []
    # When the leases have run out, nothing is missing any more.
    clock.now += SECONDS * SECOND
    give_back(books.url, clock, *(node.lessee for node in nodes))
    assert books.rows("leases") == []
    assert levels(books)["concurrent"] == len(opened)
    while isinstance(nodes[0].book(one := request())[0], Admitted):
        opened.append(one)
    assert len(opened) == 800
    nodes[1].book(*(completed(one.id) for one in opened))
    give_back(books.url, clock, nodes[1].lessee)
    with connect(books.url) as connection:
        ForgetWorkers().perform(connection, [node.lessee.worker for node in nodes])
    assert levels(books)["concurrent"] == 0
    assert levels(books)["quota"] == sum(15 for _ in opened)
    assert findings(books.url) == []


def limit_of(kind: Any) -> Limit:
    limits = {"requests": 2400, "tokens": 240_000, "concurrent": 800, "quota": 10**7}
    return Limit(Key("org_a", MODEL, kind), limits[kind])


def test_in_no_minute_more_than_two_limits_and_what_a_lease_lasts(store_url: str, clock: Clock) -> None:
    """Workers that hoard as much as they can, and use it as late as they can."""
    limit = 240
    nodes = [Node(store_url, f"w{number}", clock, Limits(requests_per_minute=limit)) for number in range(NODES)]
    times: list[int] = []
    for second in range(200):
        for node in nodes:
            busy = second % 66 > 62 or second % 7 == 0
            asked = [request(worker=node.lessee.worker) for _ in range(12 if busy else 1)]
            outcomes = node.book(*asked)
            times += [clock.now] * sum(isinstance(outcome, Admitted) for outcome in outcomes)
        clock.now += SECOND
    for node in nodes:
        node.engine.dispose()
    for begin in set(times):
        within = sum(begin <= at < begin + 60 * SECOND for at in times)
        assert within <= 2 * limit + limit * SECONDS // 60
    assert len(times) <= limit + limit * 200 // 60


JUMPS = pytest.mark.parametrize("jump", [SECONDS * SECOND, 3600 * SECOND, -1, -3600 * SECOND], ids=str)


@JUMPS
def test_a_lease_of_another_time_is_not_used(books: Books, nodes: list[Node], clock: Clock, jump: int) -> None:
    node = nodes[0]
    node.admit(), node.admit()
    clock.now += jump
    node.admit()
    assert node.locked
    assert levels(books)["concurrent"] == 3 + leased(books)["concurrent"]
    assert levels(books)["quota"] == 300 + leased(books)["quota"]


@JUMPS
def test_a_lease_of_another_time_is_given_back(books: Books, nodes: list[Node], clock: Clock, jump: int) -> None:
    nodes[0].admit(), nodes[0].admit()
    assert len(books.rows("leases")) == len(KINDS)
    clock.now += jump
    give_back(books.url, clock, nodes[0].lessee)
    assert books.rows("leases") == []
    assert (levels(books)["concurrent"], levels(books)["quota"]) == (2, 200)


def test_a_request_that_no_lease_covers_is_decided_on_all_that_there_is(books: Books, nodes: list[Node]) -> None:
    node = nodes[0]
    node.admit(), node.admit()
    large, too_large = request(input_tokens=100_000, output_tokens=0), request(input_tokens=240_001, output_tokens=0)
    outcomes = node.book(large, too_large)
    assert isinstance(outcomes[0], Admitted)
    assert isinstance(outcomes[1], Refused)
    assert "240000 tokens per minute allowed" in outcomes[1].message
    assert outcomes[1].retry_after_us is None
    standing = outcomes[0].standing.tokens
    assert standing is not None
    assert standing.left == 240_000 - 200 - 100_000


def test_clients_are_told_of_what_is_not_leased_too(nodes: list[Node]) -> None:
    node = nodes[0]
    for admitted in range(1, 6):
        (outcome,) = node.book(request())
        assert isinstance(outcome, Admitted)
        assert outcome.standing.headers()["x-ratelimit-remaining-requests"] == str(2400 - admitted)
        assert outcome.standing.headers()["x-ratelimit-remaining-tokens"] == str(240_000 - 100 * admitted)
    assert not node.locked


def test_what_is_given_back_beyond_the_most_goes_to_all(books: Books, nodes: list[Node]) -> None:
    opened = [nodes[0].admit() for _ in range(200)]
    nodes[1].admit(), nodes[1].admit()
    for one in opened:
        nodes[1].book(completed(one.id))
        assert leased(books)["concurrent"] <= 2 * most(limit_of("concurrent"), SECONDS)
    assert levels(books)["concurrent"] == 2 + leased(books)["concurrent"]
    assert findings(books.url) == []


def test_what_is_limited_no_longer_is_leased_no_longer(books: Books, nodes: list[Node]) -> None:
    node = nodes[0]
    opened = [node.admit() for _ in range(3)]
    node.ledger = Ledger(FREE, TermsReader(Limits(), seconds=0), lessee=node.lessee)
    node.book(*(completed(one.id) for one in opened))
    assert leased(books).total() == 0
    assert levels(books)["concurrent"] == 0
    assert levels(books)["quota"] == 45


def test_a_transaction_that_is_rolled_back_leaves_the_lease_as_it_was(books: Books, nodes: list[Node]) -> None:
    node = nodes[0]
    node.admit(), node.admit()
    before = leased(books), levels(books)
    with node.engine.connect() as connection:
        node.ledger.perform(connection, [request() for _ in range(3)])
        connection.rollback()
    assert (leased(books), levels(books)) == before
    node.admit()
    assert not node.locked


class Living:
    """A worker with all that it does in the background."""

    def __init__(self, url: str, state: Path, name: str) -> None:
        self.store = Store(url, timeout=30)
        self.lessee = Lessee(name, SECONDS)
        self.ledger = Ledger(FREE, TermsReader(LIMITS, seconds=0), lessee=self.lessee)
        self.checkpoint = Checkpoint(state, name)
        self.recovery = Recovery(self.store, self.ledger, self.checkpoint, "n1", lessee=self.lessee)

    async def admit(self) -> None:
        asked = request(worker=self.lessee.worker)
        assert isinstance(await self.store.run(self.ledger, asked), Admitted)


async def test_a_worker_that_stops_gives_all_back(books: Books, tmp_path: Path) -> None:
    worker = Living(books.url, tmp_path, "w1")
    for _ in range(3):
        await worker.admit()
    assert leased(books)["concurrent"] > 0
    await worker.recovery.leave()
    await worker.store.close()
    assert books.rows("leases") == []
    assert levels(books)["concurrent"] == 3


async def test_a_worker_gives_back_what_has_run_out_and_nothing_before(books: Books, tmp_path: Path) -> None:
    worker = Living(books.url, tmp_path, "w1")
    for _ in range(3):
        await worker.admit()
    before = leased(books)
    await worker.recovery.return_leases()
    assert leased(books) == before
    books.execute("UPDATE leases SET expires_at = 1")
    await worker.recovery.return_leases()
    await worker.store.close()
    assert books.rows("leases") == []
    assert levels(books)["concurrent"] == 3


async def test_what_a_dead_worker_held_is_given_back_by_another(books: Books, tmp_path: Path) -> None:
    dead, other = Living(books.url, tmp_path, "dead"), Living(books.url, tmp_path, "other")
    for _ in range(3):
        await dead.admit()
    assert leased(books)["concurrent"] > 0
    assert findings(books.url) == []
    # The lock on its file ends with the process.
    os.close(dead.checkpoint._file)
    await other.recovery.settle_dead()
    assert books.rows("leases") == []
    assert (books.open(), levels(books)["concurrent"], levels(books)["quota"]) == (0, 0, 0)
    assert findings(books.url) == []
    await asyncio.gather(dead.store.close(), other.store.close())


async def test_a_worker_of_which_only_leases_are_left_is_found(books: Books, tmp_path: Path) -> None:
    lost = Living(books.url, tmp_path, "lost")
    for _ in range(3):
        await lost.admit()
    books.book(*(completed(row["id"]) for row in books.rows("reservations")))
    await lost.store.run(AdoptWorkers(), None)
    assert await lost.store.read(read_beats) == {"lost": 0}
    await lost.recovery.leave()
    assert await lost.store.read(read_beats) == {}
    await lost.store.close()


def test_what_two_transactions_of_a_worker_lease_adds_up(postgres_url: str, clock: Clock) -> None:
    """A connection is lost in a commit: its transaction still runs when the worker begins the next one."""
    books, node = Books(postgres_url), Node(postgres_url, "w1", clock)
    node.admit()
    lost = node.engine.connect()
    node.ledger.perform(lost, [request(worker="w1")])
    reached = Node(postgres_url, "w1", clock)
    reached.lessee._used = node.lessee._used

    async def meet() -> None:
        waiting = asyncio.create_task(asyncio.to_thread(reached.admit))
        async with asyncio.timeout(30):
            while not waits(postgres_url):
                await asyncio.sleep(0.01)
        lost.commit()
        await waiting

    asyncio.run(meet())
    assert levels(books)["concurrent"] == 3 + leased(books)["concurrent"]
    assert findings(postgres_url) == []
    for engine in (lost, node.engine, reached.engine):
        engine.close() if isinstance(engine, Connection) else engine.dispose()


def waits(url: str) -> bool:
    """Whether a transaction waits for another's lock."""
    assert sqlite_file(url) is None
    with connect(url) as connection:
        blocked = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return bool(connection.execute(text(blocked)).scalar_one())
