"""A store that fails says so, leaves nothing half done, and works again when it can."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.dialects.postgresql import insert

from sidecar.store import Store, StoreUnavailable, connect
from sidecar.store.batch import commit
from sidecar.store.engine import open_engine
from sidecar.store.tables import organizations
from stack.paths import ROOT
from stack.postgres import Postgres
from tests.store.kinds import Call, Insert, count, names, row

CALL = Call()


class InsertOnce:
    """Inserts organizations; one that is there already is left as it is."""

    def perform(self, connection: Connection, items: Sequence[str]) -> Sequence[str]:
        statement = insert(organizations).on_conflict_do_nothing()
        connection.execute(statement, [row(item) for item in items])
        return items


def insert_and(then: Callable[[Connection], object]) -> Callable[[Connection], object]:
    def item(connection: Connection) -> None:
        Insert().perform(connection, ["half"])
        then(connection)

    return item


async def answer(store: Store) -> None:
    """Wait until the store works again."""
    async with asyncio.timeout(60):
        while True:
            try:
                await store.read(count)
                return
            except StoreUnavailable:
                await asyncio.sleep(0.05)


async def test_a_server_that_dies_in_a_transaction(
    own_postgres: Postgres, own_postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store = Store(own_postgres_url)
    await store.run(Insert(), "before")
    with pytest.raises(StoreUnavailable):
        await store.run(CALL, insert_and(lambda _: own_postgres.kill()))
    assert not store.healthy
    with pytest.raises(StoreUnavailable):
        await store.run(Insert(), "meanwhile")
    own_postgres.start()
    await answer(store)
    assert await store.read(names) == {"before"}
    assert await store.run(Insert(), "after") == "after"
    assert store.healthy
    await store.close()
    told = [(record.levelno, record.getMessage()) for record in caplog.records if record.name.startswith("sidecar")]
    assert [level for level, _ in told] == [logging.ERROR, logging.INFO]
    assert told[1][1] == "the store works again"


async def test_a_server_that_was_restarted_in_between_is_not_noticed(
    own_postgres: Postgres, own_postgres_url: str
) -> None:
    store = Store(own_postgres_url)
    await store.run(Insert(), "before")
    own_postgres.end()
    own_postgres.start()
    assert await store.run(Insert(), "after") == "after"
    await store.close()


def end_of(url: str, connection: Connection) -> None:
    """End the server's side of ``connection``."""
    terminate(url, connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def terminate(url: str, pid: int) -> None:
    with connect(url) as other:
        assert other.execute(text("SELECT pg_terminate_backend(:pid, 60000)"), {"pid": pid}).scalar_one()


async def test_a_connection_that_is_lost_before_the_commit_is_made_again(postgres_url: str) -> None:
    losses = iter([True, True, False])

    def lose(connection: Connection) -> None:
        if next(losses):
            end_of(postgres_url, connection)
            count(connection)

    store = Store(postgres_url)
    await store.run(CALL, insert_and(lose))
    assert await store.read(names) == {"half"}
    await store.close()


async def test_a_connection_that_is_lost_again_and_again_is_given_up(postgres_url: str) -> None:
    attempts: list[None] = []

    def lose(connection: Connection) -> None:
        attempts.append(None)
        end_of(postgres_url, connection)
        count(connection)

    store = Store(postgres_url)
    with pytest.raises(StoreUnavailable, match="terminating connection"):
        await store.run(CALL, insert_and(lose))
    assert len(attempts) == 4
    assert await store.read(names) == set()
    await store.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_whether_a_lost_commit_was_one_is_unknown_and_doing_it_again_is_safe(postgres_url: str, when: str) -> None:
    engine = open_engine(postgres_url, "write", 30)
    usual = engine.dialect.do_commit

    def lose(pooled: Any) -> None:
        engine.dialect.do_commit = usual  # type: ignore[method-assign]
        if when == "after":
            usual(pooled)
        terminate(postgres_url, pooled.dbapi_connection.info.backend_pid)
        # What became of it, the caller is never told.
        pooled.dbapi_connection.execute("SELECT 1")

    engine.dialect.do_commit = lose  # type: ignore[method-assign, assignment]
    with pytest.raises(StoreUnavailable):
        commit(engine, [(InsertOnce(), ["once", "and again"])])
    with connect(postgres_url) as connection:
        assert names(connection) == ({"once", "and again"} if when == "after" else set())
    assert commit(engine, [(InsertOnce(), ["once", "and again"])]) == [["once", "and again"]]
    with connect(postgres_url) as connection:
        assert count(connection) == 2
    engine.dispose()


class LockBoth:
    """Locks two rows in the order of its item, and the second only once ``met`` has been reached by all."""

    def __init__(self, met: threading.Barrier) -> None:
        self.met = met
        self.attempts = 0

    def perform(self, connection: Connection, items: Sequence[tuple[str, str]]) -> Sequence[str]:
        self.attempts += 1
        for first, second in items:
            lock(connection, first)
            if self.attempts == 1:
                self.met.wait(60)
            lock(connection, second)
        return ["done"] * len(items)


def lock(connection: Connection, name: str) -> None:
    connection.execute(organizations.update().where(organizations.c.id == name).values(created_at=2))


async def test_transactions_that_lock_each_other_out_both_succeed(postgres_url: str) -> None:
    kind = LockBoth(threading.Barrier(2)), LockBoth(threading.Barrier(2))
    kind[1].met = kind[0].met
    stores = Store(postgres_url, timeout=30), Store(postgres_url, timeout=30)
    for name in ("a", "b"):
        await stores[0].run(Insert(), name)
    both = stores[0].run(kind[0], ("a", "b")), stores[1].run(kind[1], ("b", "a"))
    assert set(await asyncio.gather(*both)) == {"done"}
    # The server ends at least one of the two; on a busy machine they may meet once more when they try again.
    assert kind[0].attempts + kind[1].attempts >= 3
    for store in stores:
        await store.close()


async def test_a_transaction_that_cannot_be_put_in_order_is_tried_again(postgres_url: str) -> None:
    failures = iter(["40001", "40001", "40001", None])

    def fail(connection: Connection) -> str:
        state = next(failures)
        if state:
            connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '{state}'; END $$")
        return "done"

    store = Store(postgres_url)
    assert await store.run(CALL, fail) == "done"
    await store.close()


@pytest.fixture
async def impatient(store_url: str) -> AsyncIterator[Store]:
    """A store whose engines give up soon, and before their callers do."""
    store = Store(store_url, timeout=0.5)
    yield store
    await store.close()


@pytest.fixture
def another(store_url: str) -> Engine:
    return open_engine(store_url, "write", 30)


async def test_what_somebody_else_keeps_locked_is_given_up_in_time(impatient: Store, another: Engine) -> None:
    await impatient.run(Insert(), "a")
    with another.begin() as connection:
        lock(connection, "a")
        with pytest.raises(StoreUnavailable):
            await impatient.run(CALL, lambda own: lock(own, "a"))
    async with asyncio.timeout(60):
        while not await succeeds(impatient, "b"):
            pass
    another.dispose()


async def succeeds(store: Store, name: str) -> bool:
    try:
        await store.run(InsertOnce(), name)
    except StoreUnavailable:
        return False
    return True


def test_a_full_disk_leaves_nothing_half_done(sqlite_url: str) -> None:
    engine = open_engine(sqlite_url, "write", 5)

    @event.listens_for(engine, "connect")
    def _fill(connection: Any, _: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages + 2}")

    with pytest.raises(StoreUnavailable, match="full"):
        commit(engine, [(Insert(), [f"{number}-{'x' * 500}" for number in range(100)])])
    assert commit(engine, [(Insert(), ["small"])]) == [["small"]]
    engine.dispose()
    with connect(sqlite_url) as connection:
        assert names(connection) == {"small"}


DYING = """
import sys
from sidecar.store import connect
from sidecar.store.tables import organizations
from tests.store.kinds import row

with connect(sys.argv[1]) as connection:
    connection.execute(organizations.insert(), [row("half")])
    print("inside", flush=True)
    sys.stdin.read()
"""


def test_a_process_that_is_killed_in_a_transaction_leaves_neither_rows_nor_locks(store_url: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DYING, store_url], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"inside\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with connect(store_url) as connection:
        assert names(connection) == set()
        Insert().perform(connection, ["half"])


async def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/ledger.db")
    with pytest.raises(StoreUnavailable, match="unable to open"):
        await store.run(Insert(), "a")
    # It would be there for the second.
    with pytest.raises(StoreUnavailable, match="unable to open"):
        await store.read(count)
    await store.close()


async def test_no_password_and_no_value_is_told(
    own_postgres: Postgres, own_postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    own_postgres.kill()
    store = Store(own_postgres_url.replace("sidecar@", "sidecar:hunter2@"))
    with pytest.raises(StoreUnavailable) as raised:
        await store.run(Insert(), "a name of somebody")
    await store.close()
    told = f"{raised.value} {raised.value.__cause__} {caplog.text}"
    assert "hunter2" not in told
    assert "somebody" not in told


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///:memory:", "mysql://root:hunter2@host/x", "hunter2", "postgresql+asyncpg://x/y"]
)
def test_a_url_that_is_not_a_stores_is_refused_without_its_words(url: str) -> None:
    with pytest.raises(ValueError, match="a URL") as raised:
        Store(url)
    assert "hunter2" not in str(raised.value)


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def move(file: Path, to: str) -> Path:
    return file.rename(file.with_name(to))


def copy(file: Path, to: str) -> Path:
    other = file.with_name(to)
    other.write_bytes(file.read_bytes())
    return other


async def test_a_file_that_is_taken_away_is_noticed_and_found_again(sqlite_url: str) -> None:
    store, file = Store(sqlite_url), file_of(sqlite_url)
    assert await store.run(Insert(), "before") == "before"
    away = move(file, "away.db")
    with pytest.raises(StoreUnavailable):
        await store.run(Insert(), "lost")
    with pytest.raises(StoreUnavailable):
        await store.read(names)
    # It is neither made anew nor gone on with.
    move(away, file.name)
    assert await store.run(Insert(), "after") == "after"
    assert await store.read(names) == {"before", "after"}
    await store.close()


async def test_a_file_that_is_replaced_is_the_store_from_then_on(sqlite_url: str) -> None:
    store, file = Store(sqlite_url), file_of(sqlite_url)
    assert await store.run(Insert(), "old") == "old"
    await store.close()
    back_up = copy(file, "back-up.db")
    store = Store(sqlite_url)
    assert await store.run(Insert(), "lost") == "lost"
    for companion in ("-wal", "-shm"):
        move(file.with_name(file.name + companion), "gone")
    move(back_up, file.name)
    assert await store.run(Insert(), "new") == "new"
    assert await store.read(names) == {"old", "new"}
    await store.close()
