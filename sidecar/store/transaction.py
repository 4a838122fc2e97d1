"""What a transaction can be asked on either engine: the store's clock, and its own number."""

from __future__ import annotations

import time

from sqlalchemy import Connection, text

_CLOCK = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
_TRANSACTION = text("SELECT pg_current_xact_id()::text::bigint")
_OLDEST_RUNNING = text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")


def now_us(connection: Connection) -> int:
    """Microseconds since the epoch on the store's own clock, so that the nodes' clocks play no part."""
    if connection.dialect.name == "sqlite":
        return time.time_ns() // 1000
    return int(connection.execute(_CLOCK).scalar_one())


def transaction_id(connection: Connection) -> int:
    """The number of the open write transaction on PostgreSQL; 0 on SQLite, where one writes at a time."""
    if connection.dialect.name == "sqlite":
        return 0
    return int(connection.execute(_TRANSACTION).scalar_one())


def settled_below(connection: Connection) -> int:
    """All transactions with a number below this have ended: nothing with such a number can appear later."""
    if connection.dialect.name == "sqlite":
        return 1
    return int(connection.execute(_OLDEST_RUNNING).scalar_one())
