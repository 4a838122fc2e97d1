"""A store for each test, and a PostgreSQL for those that end it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sidecar.store import Store
from sidecar.store.migrate import migrate
from stack.postgres import Postgres
from tests.store.commands import Run, runner, write_config


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    store = Store(store_url, timeout=30)
    yield store
    await store.close()


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[Postgres]:
    """A server that its test may end."""
    server = Postgres(tmp_path / "postgres.log", sync=False)
    yield server
    server.stop()


@pytest.fixture
def own_postgres_url(own_postgres: Postgres) -> str:
    url = own_postgres.url(own_postgres.create_database())
    migrate(url)
    return url


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration for commands."""
    return write_config(tmp_path)


@pytest.fixture
def run(config: Path) -> Run:
    """Runs a command of the configuration."""
    return runner(config)
