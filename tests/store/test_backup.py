"""A back-up is the store of one moment, whole, and what is restored is what was backed up."""

from __future__ import annotations

import asyncio
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from sqlalchemy import Connection, text
from typer.testing import CliRunner, Result

from sidecar.cli import app
from sidecar.store import Store, connect
from sidecar.store.backup import back_up
from sidecar.store.engine import sqlite_file
from sidecar.store.migrate import migrate
from sidecar.store.schema import schema_version, versions
from stack.paths import ROOT
from stack.postgres import Postgres
from tests.store.kinds import Call, Insert, count, names
from tests.store.rows import contents, fill, rows_of

MODEL = {"name": "m", "triton_model": "m", "tokenizer": "m", "context_length": 2048}


@pytest.fixture
def sockets() -> Iterator[Path]:
    with TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.fixture
def filled_url(sqlite_url: str) -> str:
    with connect(sqlite_url) as connection:
        fill(connection, rows_of(versions()[-1]))
    return sqlite_url


def run(tmp_path: Path, url: str, *arguments: str, sockets: str = "/tmp") -> Result:
    config = tmp_path / "sidecar.yaml"
    content = {"node": "n", "sockets": sockets, "triton": {"address": "127.0.0.1:1"}, "models": [MODEL]}
    config.write_text(yaml.safe_dump({**content, "store": {"url": url}}))
    return CliRunner().invoke(app, ["store", *arguments, "--config", str(config)])


def backed_up(tmp_path: Path, url: str) -> Path:
    backup = tmp_path / "backup.db"
    result = run(tmp_path, url, "backup", str(backup))
    assert result.exit_code == 0, result.output
    return backup


def test_what_is_restored_is_what_was_backed_up(tmp_path: Path, filled_url: str, sockets: Path) -> None:
    backup = backed_up(tmp_path, filled_url)
    with connect(filled_url) as connection:
        before = contents(connection)
        connection.execute(text("DELETE FROM usage_records"))
        Insert().perform(connection, ["later"])
    result = run(tmp_path, filled_url, "restore", str(backup), sockets=str(sockets))
    assert result.exit_code == 0, result.output
    with connect(filled_url) as connection:
        assert contents(connection) == before
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
    file = sqlite_file(filled_url)
    assert file is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # What was there can be brought back.
    replaced = result.output.split()[-1].rstrip(".")
    with connect(f"sqlite:///{replaced}") as connection:
        assert "later" in names(connection)


async def test_a_store_in_use_is_copied_as_it_is_in_one_moment(tmp_path: Path, sqlite_url: str) -> None:
    store = Store(sqlite_url)
    kind = Call()

    def pair(number: int) -> Callable[[Connection], object]:
        return lambda connection: Insert().perform(connection, [f"{number:03}-a", f"{number:03}-b"])

    writing = [asyncio.create_task(store.run(kind, pair(number))) for number in range(1000)]
    await writing[0]
    backup = tmp_path / "backup.db"
    await asyncio.to_thread(back_up, sqlite_url, backup)
    await asyncio.gather(*writing)
    await store.close()
    with connect(f"sqlite:///{backup}") as connection:
        found = names(connection)
    assert found
    assert {name[:3] for name in found if name.endswith("a")} == {name[:3] for name in found if name.endswith("b")}


def test_a_back_up_is_one_file_that_its_user_alone_can_read(tmp_path: Path, filled_url: str) -> None:
    directory = tmp_path / "backups"
    directory.mkdir()
    back_up(filled_url, directory / "backup.db")
    assert [(path.name, stat.S_IMODE(path.stat().st_mode)) for path in directory.iterdir()] == [("backup.db", 0o600)]


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, filled_url: str) -> None:
    (tmp_path / "backup.db").write_text("precious")
    result = run(tmp_path, filled_url, "backup", str(tmp_path / "backup.db"))
    assert result.exit_code == 1
    assert "exists already" in result.output
    assert (tmp_path / "backup.db").read_text() == "precious"


def damaged(backup: Path) -> None:
    content = bytearray(backup.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    backup.write_bytes(content)


def inconsistent(backup: Path) -> None:
    # In the table or in the index, but not in both.
    backup.write_bytes(backup.read_bytes().replace(b"acme", b"acmf", 1))


def cut(backup: Path) -> None:
    backup.write_bytes(backup.read_bytes()[:20000])


def no_database(backup: Path) -> None:
    backup.write_text("no database" * 1000)


def another_program(backup: Path) -> None:
    backup.write_bytes(b"")


def later_release(backup: Path) -> None:
    with connect(f"sqlite:///{backup}") as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (damaged, "damaged|cannot be copied"),
        (inconsistent, "is damaged"),
        (cut, "damaged|cannot be copied"),
        (no_database, "file is not a database"),
        (another_program, "is not a back-up of a store"),
        (later_release, "schema 9999, later than this release's"),
        (Path.unlink, "unable to open"),
    ],
)
def test_what_is_no_whole_back_up_changes_nothing(
    tmp_path: Path, filled_url: str, sockets: Path, spoil: object, words: str
) -> None:
    backup = backed_up(tmp_path, filled_url)
    assert callable(spoil)
    spoil(backup)
    with connect(filled_url) as connection:
        before = contents(connection)
    result = run(tmp_path, filled_url, "restore", str(backup), sockets=str(sockets))
    assert result.exit_code == 1
    assert any(word in result.output for word in words.split("|")), result.output
    with connect(filled_url) as connection:
        assert contents(connection) == before
    file = sqlite_file(filled_url)
    assert file is not None
    assert [path.name for path in file.parent.iterdir()] == ["ledger.db"]


@pytest.mark.parametrize("version", versions())
def test_a_back_up_of_an_earlier_release_is_brought_up_to_date(tmp_path: Path, sockets: Path, version: str) -> None:
    backup = tmp_path / "backup.db"
    migrate(f"sqlite:///{backup}", version)
    with connect(f"sqlite:///{backup}") as connection:
        fill(connection, rows_of(version))
    url = f"sqlite:///{tmp_path}/new/ledger.db"
    result = run(tmp_path, url, "restore", str(backup), sockets=str(sockets))
    assert result.exit_code == 0, result.output
    assert schema_version(url) == versions()[-1]
    with connect(url) as connection:
        assert count(connection) == len(rows_of(version)["organizations"])


def test_nothing_is_restored_under_a_sidecar_that_runs(tmp_path: Path, filled_url: str, sockets: Path) -> None:
    backup = backed_up(tmp_path, filled_url)
    with socket.socket(socket.AF_UNIX) as worker:
        worker.bind(str(sockets / "worker-0.sock"))
        worker.listen()
        result = run(tmp_path, filled_url, "restore", str(backup), sockets=str(sockets))
    assert result.exit_code == 1
    assert "the sidecar runs: stop it first" in result.output.lower()


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_postgresql_has_its_own_programs(tmp_path: Path, command: str) -> None:
    result = run(tmp_path, "postgresql://node@db/ledger", command, str(tmp_path / "backup"))
    assert result.exit_code == 1
    assert "pg_dump" in result.output


def documented(program: str) -> list[str]:
    """The command that docs/store.md gives for PostgreSQL."""
    lines = (ROOT / "docs" / "store.md").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{program} ")).split()


def test_the_documented_commands_bring_a_postgresql_store_back(
    tmp_path: Path, postgres: Postgres, postgres_url: str
) -> None:
    backup = tmp_path / "ledger.dump"
    backup.touch(mode=0o600)
    with connect(postgres_url) as connection:
        fill(connection, rows_of(versions()[-1]))
        before = contents(connection)

    def perform(program: str, url: str) -> None:
        values = {'"$STORE_URL"': url, "ledger.dump": str(backup), "--file=ledger.dump": f"--file={backup}"}
        values['--dbname="$STORE_URL"'] = f"--dbname={url}"
        command = [values.get(part, part) for part in documented(program)]
        subprocess.run([postgres.programs / command[0], *command[1:]], check=True, capture_output=True)

    perform("pg_dump", postgres_url)
    # Into the same database, and into a new one.
    new = postgres.create_database()
    for url in (postgres_url, postgres.url(new)):
        with connect(postgres_url) as connection:
            connection.execute(text("DELETE FROM usage_records"))
        perform("pg_restore", url)
        migrate(url)
        with connect(url) as connection:
            assert contents(connection) == before
    postgres.drop_database(new)
