"""The migrations make the tables that the code works with, on both engines, whoever comes first and from wherever.

``data/<version>.json`` holds rows as a release of that version wrote them, by table; bytes are in hexadecimal. A new
version needs such a file, and no more.
"""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, select, text

from sidecar.store import SchemaError, StoreUnavailable, connect
from sidecar.store.migrate import migrate
from sidecar.store.schema import MIGRATIONS, schema_version, versions
from sidecar.store.tables import metadata
from stack.paths import ROOT
from stack.postgres import Postgres
from tests.store.rows import Rows, contents, fill, rows_of


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store that nobody has made yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store/ledger.db"
    else:
        postgres: Postgres = request.getfixturevalue("postgres")
        name = postgres.create_database()
        yield postgres.url(name)
        postgres.drop_database(name)


def test_the_migrations_make_the_tables_that_the_code_works_with(store_url: str) -> None:
    with connect(store_url) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_the_versions_are_those_of_the_migrations() -> None:
    known = ScriptDirectory(str(MIGRATIONS)).walk_revisions()
    assert versions() == [script.revision for script in known][::-1]


def test_a_command_loads_alembic_only_to_upgrade(empty_url: str) -> None:
    script = (
        "import sys; from sidecar.store.schema import bring_up_to_date; bring_up_to_date(sys.argv[1]); "
        "print('alembic' in sys.modules)"
    )
    argv = [sys.executable, "-c", script, empty_url]
    told = [subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert told == ["True\n", "False\n"]
    assert schema_version(empty_url) == versions()[-1]


def test_a_second_migration_changes_nothing(store_url: str) -> None:
    migrate(store_url)
    assert schema_version(store_url) == versions()[-1]


@pytest.mark.parametrize("version", versions())
def test_what_an_earlier_release_wrote_is_kept(empty_url: str, version: str) -> None:
    migrate(empty_url, version)
    written = rows_of(version)
    with connect(empty_url) as connection:
        fill(connection, written)
        before = contents(connection)
    assert {name for name, rows in before.items() if rows} == written.keys()
    migrate(empty_url)
    assert schema_version(empty_url) == versions()[-1]
    with connect(empty_url) as connection:
        after = contents(connection)
        for table in metadata.sorted_tables:
            # Each row can be read as the code reads it.
            assert len(connection.execute(select(table)).all()) == len(after[table.name])
    assert kept(before, after) == before


@pytest.mark.parametrize("version", versions())
def test_the_rows_of_a_version_fill_each_of_its_tables(tmp_path: Path, version: str) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    migrate(url, version)
    with connect(url) as connection:
        tables = set(inspect(connection).get_table_names()) - {"alembic_version", "sqlite_sequence"}
    assert rows_of(version).keys() == tables


def kept(before: Rows, after: Rows) -> Rows:
    """Of the rows after, the columns that there were before."""
    return {
        table: [{column: row.get(column) for column in rows[0]} for row in after[table]] if rows else after[table]
        for table, rows in before.items()
    }


def test_processes_that_start_together_migrate_once(empty_url: str) -> None:
    script = "import sys; from sidecar.store.migrate import migrate; migrate(sys.argv[1])"
    processes = [
        subprocess.Popen([sys.executable, "-c", script, empty_url], cwd=ROOT, stderr=subprocess.PIPE) for _ in range(4)
    ]
    errors = [process.communicate()[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors
    assert schema_version(empty_url) == versions()[-1]


def test_a_migration_that_fails_on_its_way_leaves_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade = command.upgrade

    def fail(*arguments: Any) -> None:
        upgrade(*arguments)
        raise InterruptedError

    monkeypatch.setattr(command, "upgrade", fail)
    with pytest.raises(InterruptedError):
        migrate(empty_url)
    with connect(empty_url) as connection:
        assert inspect(connection).get_table_names() == []
    monkeypatch.undo()
    migrate(empty_url)
    assert schema_version(empty_url) == versions()[-1]


def test_the_schema_of_a_later_release_is_refused(store_url: str) -> None:
    with connect(store_url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaError, match=f"version 9999, which is later than this release's {versions()[-1]}"):
        migrate(store_url)
    assert schema_version(store_url) == "9999"


def test_a_store_without_a_schema_has_no_version(postgres: Postgres) -> None:
    assert schema_version(postgres.url(postgres.create_database())) is None


def test_only_a_migration_makes_a_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with pytest.raises(StoreUnavailable, match="unable to open"):
        schema_version(url)
    with pytest.raises(StoreUnavailable, match="unable to open"), connect(url):
        pass
    assert not list(tmp_path.iterdir())


def test_a_file_and_its_directory_are_the_users_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "ledger.db"
    migrate(f"sqlite:///{file}")
    with connect(f"sqlite:///{file}") as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [file.parent, *file.parent.iterdir()]}
    assert modes == {"new": 0o700, "ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    file.touch(mode=0o644)
    migrate(f"sqlite:///{file}")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
