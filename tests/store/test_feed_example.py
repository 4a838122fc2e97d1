"""The example of a billing system prints every record, and goes on where it stopped, even when it was killed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidecar.feed.server import start_feed
from sidecar.feed.service import SCOPE, UsageFeed
from sidecar.store import Store
from stack.net import free_port
from stack.paths import ROOT
from tests.store.ledger_kit import PRICED, Books, completed
from tests.store.listeners import authenticator, key, organization

EXAMPLE = ROOT / "examples" / "read_the_usage_feed.py"


@pytest.fixture
def books(sqlite_url: str) -> Books:
    return Books(sqlite_url, prices=PRICED)


@pytest.fixture
async def address(sqlite_url: str) -> AsyncIterator[str]:
    store = Store(sqlite_url)
    address = f"127.0.0.1:{free_port()}"
    server = await start_feed(UsageFeed(store, authenticator(store), "USD"), address)
    yield address
    await server.stop(0)
    await store.close()


@pytest.fixture
def secret(sqlite_url: str) -> str:
    return key(sqlite_url, organization(sqlite_url, "billing"), SCOPE)[0]


def answers(books: Books, count: int) -> list[str]:
    made = [books.admit().id for _ in range(count)]
    for id in made:
        books.book(completed(id))
    return made


async def start(address: str, cursor: Path, secret: str, *options: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLE),
        address,
        str(cursor),
        *options,
        env={**os.environ, "USAGE_KEY": secret, "PYTHONPATH": str(ROOT)},
        stdout=PIPE,
        stderr=PIPE,
    )


async def printed(process: Process) -> list[str]:
    """The ids that a run prints until its end."""
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return [json.loads(line)["id"] for line in out.splitlines()]


async def test_each_run_goes_on_where_the_last_one_stopped(
    books: Books, address: str, secret: str, tmp_path: Path
) -> None:
    cursor = tmp_path / "cursor"
    for count in (3, 0, 2):
        made = answers(books, count)
        assert await printed(await start(address, cursor, secret)) == made


async def test_one_that_is_killed_loses_nothing(books: Books, address: str, secret: str, tmp_path: Path) -> None:
    cursor = tmp_path / "cursor"
    first = answers(books, 3)
    process = await start(address, cursor, secret, "--follow")
    assert process.stdout is not None
    seen: list[str] = []
    while len(seen) < len(first):
        seen.append(json.loads(await asyncio.wait_for(process.stdout.readline(), 60))["id"])
    process.kill()
    await process.wait()
    later = answers(books, 2)
    again = await printed(await start(address, cursor, secret))
    assert seen == first
    # The last one before the kill may come twice, as its cursor may not have been stored.
    assert again in (later, [first[-1], *later])


async def test_a_refusal_is_told(books: Books, address: str, tmp_path: Path) -> None:
    process = await start(address, tmp_path / "cursor", "b3os_sk_wrong")
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert err.startswith(b"UNAUTHENTICATED: ")


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 75
