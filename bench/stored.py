"""``./dev bench --stored``: what a turn of a long conversation costs, on PostgreSQL and on SQLite.

Each turn does what a worker does for one: it loads the conversation so far, and stores a response of some words.
If all turns copied their conversation, the last column would grow with the square of their number.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from sqlalchemy import text

from sidecar.responses.ids import ResponseIds
from sidecar.store import Store, connect
from sidecar.store.migrate import migrate
from sidecar.stored.items import input_items, to_lines
from sidecar.stored.master_keys import KEY_BYTES, MasterKeys
from sidecar.stored.owner import Owner
from sidecar.stored.record import Record
from sidecar.stored.responses import StoredResponses
from stack.postgres import Postgres, install

TURNS = 1000
SHOWN = (10, 100, 300, 1000)
"""After so many turns the last ten are told."""

_OWNER = Owner("org", "project", "environment")
_SAID, _ANSWERED = "What is said in a turn. " * 16, "What is answered to it. " * 16
_SIZE = "SELECT sum(length(input) + length(output) + length(response)) FROM stored_contents"


def measure_stored(directory: Path, progress: Callable[[str], None]) -> str:
    """The table, as Markdown; ``directory`` is for the stores."""
    install(progress)
    lines = ["| engine | turns | load ms | store ms | CPU ms of both | KiB stored |", "|---|---|---|---|---|---|"]
    with ExitStack() as running:
        directory.mkdir(parents=True, exist_ok=True)
        postgres = Postgres(directory / "postgres.log", sync=True)
        running.callback(postgres.stop)
        file = directory / "stored.db"
        for old in directory.glob("stored.db*"):
            old.unlink()
        for engine, url in (("SQLite", f"sqlite:///{file}"), ("PostgreSQL", postgres.url(postgres.create_database()))):
            progress(f"{TURNS} turns on {engine}")
            migrate(url)
            lines += asyncio.run(_turns(engine, url))
    return "\n".join(lines)


async def _turns(engine: str, url: str) -> list[str]:
    store, lines = Store(url, timeout=60), list[str]()
    stored = StoredResponses(store, MasterKeys([os.urandom(KEY_BYTES)]))
    previous: str | None = None
    last: list[tuple[float, float, float]] = []
    for turn in range(1, TURNS + 1):
        began, cpu = time.perf_counter(), time.process_time()
        if previous is not None:
            await stored.conversation(_OWNER, previous)
        loaded = time.perf_counter()
        record = _record(turn, previous)
        assert await stored.keep(record)
        previous = record.place.response_id
        last = [*last[-9:], (loaded - began, time.perf_counter() - loaded, time.process_time() - cpu)]
        if turn in SHOWN:
            lines.append(f"| {engine} | {turn} | {_medians(last)} | {_stored_bytes(url) / 1024:.0f} |")
    await store.close()
    return lines


def _record(turn: int, previous: str | None) -> Record:
    ulid = f"{turn:026d}"
    message = {"type": "message", "id": f"msg_{ulid}_0", "role": "assistant", "content": _ANSWERED}
    response = {"id": f"resp_{ulid}", "previous_response_id": previous, "output": [message]}
    return Record.of(response, _OWNER, to_lines(input_items(_SAID, ResponseIds(ulid))), announced=False)


def _medians(last: Sequence[tuple[float, float, float]]) -> str:
    return " | ".join(f"{median(column) * 1000:.1f}" for column in zip(*last, strict=True))


def _stored_bytes(url: str) -> int:
    with connect(url, "read") as connection:
        return int(connection.execute(text(_SIZE)).scalar_one())
