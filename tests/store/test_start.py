"""The sidecar sees to the store's schema before it serves, and starts although the store does not answer."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import text

from sidecar.admission.spool import has_spool
from sidecar.cli.check import check_store
from sidecar.cli.finding import BAD, GOOD, REFUSED
from sidecar.config.load import load
from sidecar.server import start
from sidecar.server.start import StoreRefused, bring_up_to_date, keep_trying, serve
from sidecar.store import connect
from sidecar.store.schema import schema_version, versions
from stack.paths import ROOT
from stack.postgres import Postgres

MODEL = {"name": "m", "triton_model": "m", "tokenizer": "m", "context_length": 2048}
Configure = Callable[..., Path]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Writes a configuration with a section ``store``."""

    def write(**store: str) -> Path:
        path = tmp_path / "sidecar.yaml"
        content: dict[str, Any] = {"node": "n", "sockets": "/tmp", "triton": {"address": "127.0.0.1:1"}}
        path.write_text(yaml.safe_dump({**content, "models": [MODEL], "store": store}))
        return path

    return write


def of_a_later_release(url: str) -> None:
    with connect(url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))


async def test_the_store_is_made(configure: Configure, tmp_path: Path) -> None:
    assert await bring_up_to_date(configure(state="state"))
    assert schema_version(f"sqlite:///{tmp_path}/state/ledger.db") == versions()[-1]


async def test_a_spool_is_made_although_the_store_does_not_answer(configure: Configure, tmp_path: Path) -> None:
    path = configure(state="state", when_down="spool", url="postgresql://nobody@/nothing?host=/nowhere")
    assert not await bring_up_to_date(path)
    assert schema_version(f"sqlite:///{tmp_path}/state/spool.db") == versions()[-1]
    # It may hold what has still to be moved when it is not used any more.
    assert has_spool(load(configure(state="state")).store)
    assert not has_spool(load(configure(state="other")).store)


async def test_a_later_schema_ends_the_start_with_words(
    configure: Configure, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    of_a_later_release(store_url)
    path = configure(url=store_url)
    assert await serve(load(path), path) == REFUSED
    assert "the store's schema has the version 9999, which is later than" in " ".join(capsys.readouterr().err.split())


async def test_a_directory_that_cannot_be_made_ends_the_start_with_words(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(StoreRefused, match=r"sidecar.yaml: store: .*state"):
        await bring_up_to_date(configure(state="state"))


async def test_a_store_that_does_not_answer_is_seen_to_when_it_does(
    configure: Configure, own_postgres: Postgres, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "_FIRST_DELAY_SECONDS", 0.05)
    url = own_postgres.url(own_postgres.create_database())
    own_postgres.end()
    trying = asyncio.create_task(keep_trying(configure(url=url)))
    async with asyncio.timeout(60):
        while caplog.text.count("The store cannot be used") < 2:
            await asyncio.sleep(0.05)
    own_postgres.start()
    await asyncio.wait_for(trying, 60)
    assert schema_version(url) == versions()[-1]


async def test_a_later_schema_found_late_is_told_and_left_alone(
    configure: Configure, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    of_a_later_release(store_url)
    path = configure(url=store_url)
    with pytest.raises(StoreRefused, match="9999"):
        await bring_up_to_date(path)
    await keep_trying(path)
    assert caplog.records[-1].levelno == logging.CRITICAL
    assert schema_version(store_url) == "9999"


def test_check_says_what_it_finds(configure: Configure, store_url: str) -> None:
    path = configure(url=store_url)
    good = check_store(load(path))
    assert (good.status, good.note) == (GOOD, False)
    assert good.text.endswith(f"answers, schema {versions()[-1]}")
    of_a_later_release(store_url)
    assert check_store(load(path)).status == REFUSED


def test_check_says_that_there_is_no_store_yet(configure: Configure, postgres: Postgres, tmp_path: Path) -> None:
    name = postgres.create_database()
    for store in ({"state": "state"}, {"url": postgres.url(name)}):
        finding = check_store(load(configure(**store)))
        assert (finding.status, finding.note) == (GOOD, True)
    assert not (tmp_path / "state").exists()
    postgres.drop_database(name)


def test_check_tells_no_password(configure: Configure, tmp_path: Path) -> None:
    finding = check_store(load(configure(url=f"postgresql://node:hunter2@/ledger?host={tmp_path}")))
    assert finding.status == BAD
    assert "ledger" in finding.text
    assert "hunter2" not in finding.text


def test_the_supervisor_does_not_load_what_its_workers_need() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sidecar.cli, sidecar.server.start, sys; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "sidecar.server.start" in loaded
    assert not {"alembic", "sqlalchemy", "psycopg", "grpc"}.intersection(loaded)
