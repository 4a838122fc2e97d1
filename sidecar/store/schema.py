"""The version of a store's schema, told without Alembic, which takes longer to load than a command takes to run."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from sidecar.store.engine import connect, sqlite_file
from sidecar.store.errors import StoreUnavailable

MIGRATIONS = Path(__file__).parent / "migrations"
"""What Alembic runs. A version is a file ``versions/v<number>_<what it brings>.py``, and its number the revision."""

_NUMBER = slice(1, 5)
_LONGEST_SECONDS = 60.0
# Alembic's own.
_VERSION = table("alembic_version", column("version_num"))


def versions() -> list[str]:
    """This release's versions, the oldest first."""
    return sorted(path.name[_NUMBER] for path in (MIGRATIONS / "versions").glob("v*.py"))


def schema_version(url: str) -> str | None:
    """The version of the store's schema, ``None`` where it has none yet.

    Raises:
        StoreUnavailable: it cannot be reached.
    """
    with connect(url, "read", _LONGEST_SECONDS) as connection:
        return version_of(connection)


def _is_current(url: str) -> bool:
    """Whether the store is there and needs no upgrade, for which it would be locked."""
    with suppress(StoreUnavailable):
        return schema_version(url) == versions()[-1]
    return False


def bring_up_to_date(url: str) -> None:
    """Do what :func:`sidecar.store.migrate.migrate` does, and load Alembic only where an upgrade is needed.

    Raises:
        SchemaError: as there.
        StoreUnavailable: as there.
        OSError: as there.
    """
    make_private(url)
    if not _is_current(url):
        from sidecar.store.migrate import migrate  # noqa: PLC0415 - it loads Alembic

        migrate(url)


def make_private(url: str) -> None:
    """Make the file of a SQLite store where there is none, and in any case one that its user alone can read.

    SQLite gives its companions the same mode.

    Raises:
        OSError: that cannot be done.
    """
    file = sqlite_file(url)
    if file is None:
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # Closing it again is without danger only here: it would end the locks of this process on a file that is in use.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        file.chmod(0o600)


def version_of(connection: Connection) -> str | None:
    """The same for an open connection."""
    if not inspect(connection).has_table(_VERSION.name):
        return None
    version: str | None = connection.scalar(select(_VERSION.c.version_num))
    return version
