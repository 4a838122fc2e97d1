"""Brings a store's schema to this release's version, and makes the store where there is none.

The versions are Alembic's, in ``migrations/versions``. An upgrade is one transaction on both engines, under a lock:
processes that start together do it once, and one that dies on the way leaves nothing half done.
"""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from sidecar.store.engine import connect
from sidecar.store.errors import SchemaError
from sidecar.store.schema import MIGRATIONS, make_private, version_of, versions

# Of this project alone, on a server that others use too.
_LOCK = text("SELECT pg_advisory_xact_lock(7202571936448023118)")


def migrate(url: str, version: str = "head") -> None:
    """Bring the store to ``version``, by default this release's; does nothing where it is there already.

    A SQLite file is made, readable by its user alone, with its directory.

    Raises:
        SchemaError: the store's schema is of a later release.
        StoreUnavailable: it cannot be reached or written.
        OSError: the file cannot be made.
    """
    make_private(url)
    with connect(url, "migrate") as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(_LOCK)
        _upgrade(connection, version)


def _upgrade(connection: Connection, version: str) -> None:
    found = version_of(connection)
    if found is not None and found not in versions():
        raise SchemaError(
            f"the store's schema has the version {found}, which is later than this release's {versions()[-1]}:"
            " install the release that wrote it, or restore a back-up"
        )
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, version)
