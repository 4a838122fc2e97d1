"""The migrations make the tables that the code works with, on both engines, whoever comes first and from wherever."""

from __future__ import annotations

import stat
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from sidecar.store import connect
from sidecar.store.migrate import migrate, schema_version, versions
from sidecar.store.tables import metadata


def test_the_migrations_make_the_tables_that_the_code_works_with(store_url: str) -> None:
    with connect(store_url) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_second_migration_changes_nothing(store_url: str) -> None:
    migrate(store_url)
    assert schema_version(store_url) == versions()[-1]


def test_a_file_and_its_directory_are_the_users_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "ledger.db"
    migrate(f"sqlite:///{file}")
    with connect(f"sqlite:///{file}") as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [file.parent, *file.parent.iterdir()]}
    assert modes == {"new": 0o700, "ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}
