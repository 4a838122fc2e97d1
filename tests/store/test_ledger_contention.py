"""Nodes that want the same balances at the same time wait for each other, and for nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from sqlalchemy import event

from sidecar.admission.entries import Admitted
from sidecar.admission.limits import Limits
from sidecar.store.engine import open_engine
from tests.store.ledger_kit import Books, completed, ledger, request

LIMITS = Limits(requests_per_minute=10**6, tokens_per_minute=10**9, concurrent_requests=10**6)
NODES = 8
ROUNDS = 5


def test_nodes_that_meet_new_organizations_together_never_lock_each_other_out(postgres_url: str) -> None:
    meet = Barrier(NODES)

    def node(number: int) -> int:
        choose = random.Random(number)
        # A deadlock would be an exception here; the store would try again, a second later.
        engine = open_engine(postgres_url, "write", 30)
        own, admitted = ledger(LIMITS), 0
        for round in range(ROUNDS):
            meet.wait(60)
            names = choose.sample([f"org-{round}-{one}" for one in range(40)], 25)
            asked = [request(organization_id=name) for name in names]
            with engine.begin() as connection:
                outcomes = own.perform(connection, asked)
            admitted += sum(isinstance(outcome, Admitted) for outcome in outcomes)
            with engine.begin() as connection:
                own.perform(connection, [completed(one.id) for one in asked])
        engine.dispose()
        return admitted

    with ThreadPoolExecutor(NODES) as threads:
        assert sum(threads.map(node, range(NODES))) == NODES * ROUNDS * 25


def test_no_moment_fills_a_bucket_twice_however_long_a_lock_was_waited_for(postgres_url: str) -> None:
    books = Books(postgres_url, LIMITS)
    books.admit()
    engine = open_engine(postgres_url, "write", 30)
    times: list[int] = []

    with engine.begin() as connection:
        before_locking(connection, lambda: times.append(updated_at_after(books)))
        ledger(LIMITS).perform(connection, [request()])
    engine.dispose()
    times.append(updated_at(books))
    # A bucket's time goes back only with the clock.
    assert times == sorted(times)


def before_locking(connection: Any, then: Callable[[], object]) -> None:
    """Do something once, when the balances are about to be locked."""
    pending = [then]

    @event.listens_for(connection, "before_cursor_execute")
    def _look(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if "JOIN balances" in statement and pending:
            pending.pop()()


def updated_at_after(books: Books) -> int:
    """The time of the bucket once another request has been admitted."""
    books.admit()
    return updated_at(books)


def updated_at(books: Books) -> int:
    return max(int(row["updated_at"]) for row in books.rows("balances") if row["kind"] == "requests")
