"""Opens a store by its URL: ``sqlite:///FILE`` or ``postgresql://…``.

A SQLite file is kept in WAL mode, so that who reads waits for no writer, and with ``synchronous=FULL``: what is
committed is on the disk. Its writers begin with ``BEGIN IMMEDIATE``; one that began by reading could not go on once
another has written. See https://www.sqlite.org/wal.html and https://www.sqlite.org/lang_transaction.html.

On PostgreSQL the server is told to give up what takes longer than the caller waits, and to end a connection that sits
in an open transaction: a process that is stopped there would hold its row locks for ever.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from sidecar.store.errors import is_unavailable, unavailable

Access = Literal["read", "write", "migrate"]
# libpq waits at least two seconds for a connection, whatever it is told.
_SHORTEST_CONNECT_SECONDS = 2
_COMMAND_SECONDS = 60.0
# Between two looks at whether a SQLite file can be written; a transaction takes some milliseconds.
_PAUSE_SECONDS = (0.0005, 0.002)
_REPORT_SECONDS = 3600.0


def parse(url: str) -> URL:
    """The URL, if it is one of a store.

    Raises:
        ValueError: it is not; the message holds nothing of it, as it may hold a password.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ValueError("a URL such as sqlite:///FILE or postgresql://USER@HOST/DATABASE is needed") from None
    if parsed.drivername == "sqlite" and parsed.database and parsed.database != ":memory:":
        return parsed
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    raise ValueError("a URL that begins with sqlite:/// and names a file, or with postgresql://, is needed")


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite store, ``None`` for PostgreSQL."""
    parsed = parse(url)
    return Path(parsed.database) if parsed.drivername == "sqlite" and parsed.database else None


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    return parse(url).set(drivername=make_url(url).drivername).render_as_string(hide_password=True)


def open_engine(url: str, access: Access, timeout: float) -> Engine:
    """An engine of one connection, which is opened when it is first needed.

    ``timeout`` is in seconds, for the connection, for a lock and for a statement. With ``read`` nothing can be written,
    and a transaction sees one state of the store from its first statement to its end.
    """
    parsed = parse(url)
    if parsed.drivername == "sqlite":
        return _open_sqlite(str(parsed.database), access, timeout)
    return _open_postgresql(parsed, access, timeout)


def file_uri(file: Path, mode: Literal["ro", "rw"]) -> str:
    """How SQLite is told to open a file that must be there. https://www.sqlite.org/uri.html"""
    return f"file:{quote(str(file.absolute()))}?mode={mode}"


@contextmanager
def connect(url: str, access: Access = "write", seconds: float | None = None) -> Iterator[Connection]:
    """One transaction for a command; it commits at the end, or rolls back on an exception.

    With ``read`` it waits for no writer, holds none up, and may read for an hour. ``seconds`` is another bound for a
    lock and for a statement.

    Raises:
        StoreUnavailable: the store cannot be reached or used.
    """
    engine = open_engine(url, access, seconds or (_REPORT_SECONDS if access == "read" else _COMMAND_SECONDS))
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        if is_unavailable(error):
            raise unavailable(error) from error
        raise
    finally:
        engine.dispose()


def _open_sqlite(database: str, access: Access, timeout: float) -> Engine:
    # A file that is not there is a fault, rather than a new empty store: only a migration makes one.
    uri = file_uri(Path(database), "rw")

    def connect_sqlite() -> sqlite3.Connection:
        # Transactions are begun by the event below, not by the driver.
        connection = sqlite3.connect(uri, timeout, uri=True, isolation_level=None, check_same_thread=False)
        pragmas = ["synchronous=FULL", "foreign_keys=ON"]
        if access == "read":
            pragmas.append("query_only=ON")
        elif access == "migrate":
            # It stays so in the file.
            pragmas.append("journal_mode=WAL")
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    engine = create_engine("sqlite://", creator=connect_sqlite, **_pool(timeout))
    begin = {"read": "BEGIN", "write": "BEGIN IMMEDIATE", "migrate": "BEGIN EXCLUSIVE"}[access]

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        own = cast("sqlite3.Connection", connection.connection.dbapi_connection)
        own.execute("PRAGMA busy_timeout=0")
        try:
            if not _begun(own, begin, timeout):
                # Once more, so that its fault is told as all others are.
                connection.exec_driver_sql(begin)
        finally:
            own.execute(f"PRAGMA busy_timeout={ceil(timeout * 1000)}")

    @event.listens_for(engine, "connect")
    def _note_file(_connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
        record.info["file"] = _identity(database)

    @event.listens_for(engine, "checkout")
    def _check_file(_connection: sqlite3.Connection, record: ConnectionPoolEntry, _proxy: object) -> None:
        # SQLite goes on with a file that has been removed or replaced, and all that it writes is lost.
        if _identity(database) != record.info["file"]:
            raise DisconnectionError

    return engine


def _identity(file: str) -> tuple[int, int] | None:
    """What tells a file from another of its name; ``None`` where there is none."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _begun(connection: sqlite3.Connection, begin: str, timeout: float) -> bool:
    """Begin a transaction as soon as no other connection writes; ``False`` where it cannot be begun.

    SQLite by itself looks again after pauses that grow to 100 ms, so that who has waited for long goes on to wait while
    others come and go.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            connection.execute(begin)
        except sqlite3.OperationalError as error:
            # The lowest byte is the error, the others say more of it.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                return False
            time.sleep(random.uniform(*_PAUSE_SECONDS))
        else:
            return True
    return False


def _open_postgresql(url: URL, access: Access, timeout: float) -> Engine:
    milliseconds = ceil(timeout * 1000)
    settings = {
        "statement_timeout": milliseconds if access != "migrate" else 0,
        "lock_timeout": milliseconds if access != "migrate" else 0,
        "idle_in_transaction_session_timeout": milliseconds,
        "default_transaction_read_only": "on" if access == "read" else "off",
        "synchronous_commit": "on",
    }
    arguments: dict[str, Any] = {
        "application_name": "responses-sidecar",
        "connect_timeout": max(_SHORTEST_CONNECT_SECONDS, ceil(timeout)),
        # A server that is gone without a word is noticed by the kernel.
        "tcp_user_timeout": milliseconds,
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }
    isolation: Any = "REPEATABLE READ" if access == "read" else "READ COMMITTED"
    return create_engine(url, connect_args=arguments, isolation_level=isolation, **_pool(timeout))


def _pool(timeout: float) -> dict[str, Any]:
    # Errors go to the logs, and values may be a client's.
    return {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0, "pool_timeout": timeout, "hide_parameters": True}
