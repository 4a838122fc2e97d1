"""Workers are killed, clients leave, the database is killed and the clock jumps: the ledger is what clients received.

Everything is real but Envoy and Triton: processes, files, stores. See ``stress_worker.py`` for what a worker does.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from sidecar.admission.receipts import Log, read_log
from sidecar.admission.reconcile import reconcile
from sidecar.responses.page import Page
from sidecar.store import connect
from sidecar.store.engine import sqlite_file
from stack.paths import ROOT
from stack.postgres import Postgres
from tests.store.ledger_kit import Books
from tests.store.stress_worker import (
    CONCURRENT,
    CONCURRENT_WITH_LEASES,
    INPUT_TOKENS,
    ORGANIZATIONS,
    PRICE,
    QUOTA,
    STREAMS,
)

WORKERS = 2
KILLS = 6
CREDITS = PRICE.of(INPUT_TOKENS, 0, 30) * 400


class Fleet:
    """Worker processes on one store, of which any may be killed; another takes its place."""

    def __init__(self, url: str, state: Path, spool: bool, lease_seconds: int) -> None:
        self.state = state
        self._options = {"url": url, "state": str(state), "spool": spool, "lease_seconds": lease_seconds}
        self._running: list[subprocess.Popen[bytes]] = []
        self._number = 0
        state.mkdir(mode=0o700)

    def start(self, streams: int = STREAMS) -> str:
        """Start a worker; it is not waited for, and may be killed before it serves. Returns its name."""
        self._number += 1
        name = f"w{self._number}"
        options = {**self._options, "name": name, "seed": self._number, "streams": streams}
        command = [sys.executable, "-m", "tests.store.stress_worker", json.dumps(options)]
        self._running.append(subprocess.Popen(command, cwd=ROOT))
        return name

    def kill_one(self, choose: random.Random) -> None:
        """Kill a worker, and start another in its place."""
        victim = self._running.pop(choose.randrange(len(self._running)))
        victim.kill()
        victim.wait()
        self.start()

    def stop(self) -> None:
        """Let all workers end well."""
        for worker in self._running:
            worker.send_signal(signal.SIGTERM)
        for worker in self._running:
            # One that does not serve yet does not hear it.
            assert worker.wait(30) in (0, -signal.SIGTERM)
        self._running = []

    def received(self) -> Counter[str]:
        """The tokens that clients have, by reservation."""
        found: Counter[str] = Counter()
        for journal in self.state.glob("*.journal"):
            found.update(journal.read_text().split())
        return found


class Sampler:
    """Looks at the store's balances all the time, as far as it answers."""

    def __init__(self, url: str) -> None:
        self.levels: dict[tuple[str, str], tuple[int, int]] = {}
        self.looks = 0
        self._engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @contextmanager
    def looking(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()
            self._engine.dispose()

    def _run(self) -> None:
        query = text(
            "SELECT organization_id, kind, level FROM balances "
            "UNION ALL SELECT organization_id, 'credits', balance - held FROM accounts"
        )
        while not self._over.wait(0.02):
            try:
                with self._engine.connect() as connection:
                    rows = connection.execute(query).all()
            except Exception:  # the store is down just now
                continue
            self.looks += 1
            for row in rows:
                low, high = self.levels.get((row.organization_id, row.kind), (row.level, row.level))
                self.levels[row.organization_id, row.kind] = (min(low, row.level), max(high, row.level))


def outages(url: str, postgres: Postgres | None) -> Callable[[float], None]:
    """What makes the store fail for some seconds: a kill of the server, or a lock that nobody gives back."""
    if postgres is not None:

        def kill(seconds: float) -> None:
            postgres.kill()
            time.sleep(seconds)
            postgres.start()

        return kill
    file = sqlite_file(url)
    assert file is not None

    def lock(seconds: float) -> None:
        with closing(sqlite3.connect(file, isolation_level=None, timeout=10)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")

    return lock


def misfortunes(fleet: Fleet, fail: Callable[[float], None], choose: random.Random) -> None:
    """Let things go wrong, in any order."""
    clock = fleet.state / "clock"
    what = ["worker"] * KILLS + ["store"] * 2 + ["clock"] * 4
    choose.shuffle(what)
    for one in what:
        time.sleep(choose.uniform(0.2, 0.8))
        if one == "worker":
            fleet.kill_one(choose)
        elif one == "clock":
            clock.with_suffix(".new").write_text(str(choose.choice((-600, -5, 0, 5, 600))))
            clock.with_suffix(".new").rename(clock)
        else:
            down = threading.Thread(target=fail, args=(choose.uniform(0.5, 1.5),))
            down.start()
            time.sleep(choose.uniform(0, 0.5))
            fleet.kill_one(choose)
            down.join()


def settle_all(fleet: Fleet, books: Books) -> None:
    """Let the workers end, and another settle what they left."""
    fleet.stop()
    last = fleet.start(streams=0)
    # Its own file is the only one left when it has been through those of all others.
    wait_until(
        lambda: (
            [file.stem for file in fleet.state.glob("*.slots")] == [last]
            and not books.open()
            and not spooled(fleet.state)
        )
    )
    fleet.stop()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it never comes to that"
        time.sleep(0.05)


def spooled(state: Path) -> int:
    """How many reservations wait in the spool."""
    file = state / "spool.db"
    if not file.exists():
        return 0
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("SELECT count(*) FROM reservations").fetchone()[0])


def receipts(url: str) -> list[Any]:
    """Those of all organizations, page by page as clients read them."""
    found: list[Any] = []
    with connect(url, "read") as connection:
        for organization in ORGANIZATIONS:
            log, listed = Log(organization, "stress", "test"), None
            while listed is None or listed["has_more"]:
                listed = read_log(connection, log, Page(100, after=listed["last_id"] if listed else None))
                found += listed["data"]
    return found


def prepare(books: Books) -> None:
    for name in ORGANIZATIONS:
        books.execute(
            "INSERT INTO organizations VALUES (:id, :id, :prepaid, 0, NULL)", id=name, prepaid=name == "org_prepaid"
        )
    books.execute(f"INSERT INTO accounts VALUES ('org_prepaid', {CREDITS}, 0)")
    books.execute(f"INSERT INTO credit_entries VALUES ('credit', 'org_prepaid', {CREDITS}, 'a test', 0)")


@pytest.mark.parametrize(
    ("spool", "lease_seconds"), [(False, 0), (True, 0), (False, 2)], ids=["refuse", "spool", "lease"]
)
@pytest.mark.timeout(180)
def test_the_ledger_is_what_clients_received(
    store_url: str, request: pytest.FixtureRequest, tmp_path: Path, spool: bool, lease_seconds: int
) -> None:
    postgres = request.getfixturevalue("postgres") if sqlite_file(store_url) is None else None
    books, choose = Books(store_url), random.Random(spool)
    prepare(books)
    fleet, sampler = Fleet(store_url, tmp_path / "state", spool, lease_seconds), Sampler(store_url)
    for _ in range(WORKERS):
        fleet.start()
    with sampler.looking():
        wait_until(lambda: len(books.records()) > 20)
        misfortunes(fleet, outages(store_url, postgres), choose)
        settle_all(fleet, books)

    received, records = fleet.received(), books.records()
    billed = {row["id"]: row["output_tokens"] for row in records}
    assert received.total() > 200
    assert sampler.looks > 20
    assert len(billed) == len(records), "a record or a correction too many"
    # A worker that is killed between a token and its mark has given its client one token that is not counted.
    lost = {row["id"] for row in records if row["outcome"] == "worker_lost"}
    wrong = {id: (received[id], billed.get(id)) for id in received if received[id] != billed.get(id)}
    assert all(id in lost and had - (has or 0) == 1 for id, (had, has) in wrong.items()), wrong
    assert len(wrong) <= KILLS + 2, wrong
    assert all(row["price"] == PRICE.of(row["input_tokens"], 0, row["output_tokens"]) for row in records)

    with connect(store_url) as connection:
        assert list(reconcile(connection, open_seconds=0)) == []
    told = receipts(store_url)
    assert {one["response_id"].removeprefix("resp_"): one["usage"]["output_tokens"] for one in told} == billed
    assert "in_progress" not in {one["outcome"] for one in told}
    charged = sum((Decimal(one["charge"]) for one in told), Decimal(0))
    assert charged.scaleb(9) == sum(row["price"] for row in records)
    paid = sum(row["price"] for row in records if row["organization_id"] == "org_prepaid")
    (account,) = books.rows("accounts")
    assert (account["balance"], account["held"]) == (CREDITS - paid, 0)
    assert books.rows("leases") == []
    tokens = sum(row["input_tokens"] + row["output_tokens"] for row in records)
    quotas = [row["level"] for row in books.rows("balances") if row["kind"] == "quota"]
    assert sum(quotas) == tokens
    assert [row["level"] for row in books.rows("balances") if row["kind"] == "concurrent"] == [0, 0, 0]
    # In an outage a node that spools may grant all over again what was left when it began.
    twice = 2 if spool else 1
    for (organization, kind), (low, high) in sampler.levels.items():
        if kind == "concurrent":
            most = CONCURRENT_WITH_LEASES if lease_seconds else CONCURRENT
            assert 0 <= low <= high <= most, (organization, low, high)
        elif kind == "quota":
            assert high <= QUOTA * twice
        elif kind == "credits":
            assert low >= CREDITS * (1 - twice)
        else:
            assert low >= 0, (organization, kind, low)
