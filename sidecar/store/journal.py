"""SQLite's journal: what was deleted stays in it until it is emptied."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from sidecar.store.engine import file_uri, sqlite_file
from sidecar.store.errors import StoreUnavailable

_SECONDS = 10.0


def empty_journal(url: str) -> bool:
    """Move all of a SQLite store's journal into its file, and cut it to nothing; whether nothing is left in it.

    That cannot be done while something else reads or writes for long. PostgreSQL sees to its own.

    Raises:
        StoreUnavailable: the file cannot be used.
    """
    file = sqlite_file(url)
    if file is None:
        return False
    try:
        with closing(sqlite3.connect(file_uri(file, "rw"), _SECONDS, uri=True, isolation_level=None)) as connection:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise StoreUnavailable(str(error)) from None
    return not busy
