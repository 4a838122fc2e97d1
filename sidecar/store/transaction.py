"""What a transaction can be asked on either engine: the store's clock, and which transactions have ended."""

from __future__ import annotations

import time

from sqlalchemy import Connection, text

_CLOCK = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
_OLDEST_RUNNING = text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")


def now_us(connection: Connection) -> int:
    """Microseconds since the epoch on the store's own clock, so that the nodes' clocks play no part."""
    if connection.dialect.name == "sqlite":
        return time.time_ns() // 1000
    return int(connection.execute(_CLOCK).scalar_one())


def settled_below(connection: Connection) -> int:
    """Transactions with a number below this have ended: no record with such a ``txid`` can appear later.

    On SQLite, where one writes at a time, all records have the number 0.
    """
    if connection.dialect.name == "sqlite":
        return 1
    return int(connection.execute(_OLDEST_RUNNING).scalar_one())
