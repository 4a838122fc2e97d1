"""Brings a store's schema to this release's version, and makes the store where there is none.

The versions are Alembic's, in ``migrations/versions``. An upgrade is one transaction on both engines, under a lock:
processes that start together do it once, and one that dies on the way leaves nothing half done.
"""

from __future__ import annotations

import os
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from sidecar.store.engine import open_engine, sqlite_file
from sidecar.store.errors import SchemaError, is_unavailable, unavailable

_MIGRATIONS = Path(__file__).parent / "migrations"
# Of this project alone, on a server that others use too.
_LOCK = text("SELECT pg_advisory_xact_lock(7202571936448023118)")
_LONGEST_SECONDS = 60.0


def versions() -> list[str]:
    """This release's versions, the oldest first."""
    return [script.revision for script in ScriptDirectory(str(_MIGRATIONS)).walk_revisions()][::-1]


def schema_version(url: str) -> str | None:
    """The version of the store's schema, ``None`` where it has none yet.

    Raises:
        StoreUnavailable: it cannot be reached.
    """
    engine = open_engine(url, "read", _LONGEST_SECONDS)
    try:
        with engine.connect() as connection:
            return _version(connection)
    except DBAPIError as error:
        raise unavailable(error) from error
    finally:
        engine.dispose()


def migrate(url: str, version: str = "head") -> None:
    """Bring the store to ``version``, by default this release's; does nothing where it is there already.

    A SQLite file is made, readable by its user alone, with its directory.

    Raises:
        SchemaError: the store's schema is of a later release.
        StoreUnavailable: it cannot be reached or written.
        OSError: the file cannot be made.
    """
    file = sqlite_file(url)
    if file is not None:
        _make_private(file)
    engine = open_engine(url, "migrate", _LONGEST_SECONDS)
    try:
        with engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(_LOCK)
            _upgrade(connection, version)
            connection.commit()
    except DBAPIError as error:
        if is_unavailable(error):
            raise unavailable(error) from error
        raise
    finally:
        engine.dispose()


def _upgrade(connection: Connection, version: str) -> None:
    found = _version(connection)
    if found is not None and found not in versions():
        raise SchemaError(
            f"the store's schema has the version {found}, which is later than this release's {versions()[-1]}:"
            " install the release that wrote it, or restore a back-up"
        )
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, version)


def _version(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _make_private(file: Path) -> None:
    """Make the file where there is none; SQLite gives its companions the same mode."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # Closing it again is without danger only here: it would end the locks of this process on a file that is in use.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        file.chmod(0o600)
