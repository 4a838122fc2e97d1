"""The store's clock is the only one, where there is more than one node."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import Connection

from sidecar.store import connect, now_us, settled_below
from sidecar.store.engine import open_engine


def test_postgresql_tells_the_time_whatever_the_node_believes(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = time.time_ns() // 1000
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    with connect(postgres_url) as connection:
        first, second = now_us(connection), now_us(connection)
    monkeypatch.undo()
    # The clock goes on within a transaction.
    assert before <= first < second <= time.time_ns() // 1000


def test_a_file_is_told_the_nodes_time(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_793_750_400_000_001_999)
    with connect(sqlite_url) as connection:
        assert now_us(connection) == 1_793_750_400_000_001
        assert settled_below(connection) > 0


def transaction_id(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT pg_current_xact_id()::text::bigint").scalar_one())


def test_what_a_transaction_writes_stays_above_until_it_and_those_before_it_have_ended(postgres_url: str) -> None:
    slow, fast, reader = (open_engine(postgres_url, access, 30) for access in ("write", "write", "read"))
    with slow.connect() as earlier:
        first = transaction_id(earlier)
        with fast.begin() as later:
            second = transaction_id(later)
        assert first < second
        with reader.connect() as connection:
            assert settled_below(connection) <= first
        earlier.commit()
    with reader.connect() as connection:
        assert settled_below(connection) > second
    for engine in (slow, fast, reader):
        engine.dispose()
