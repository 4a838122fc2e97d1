"""The heartbeat: it is heard while the loop turns, and its end or its absence is told apart."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from sidecar.server.heartbeat import beat_forever, silence


@pytest.fixture
async def beating() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.Task[None]]]:
    """What a listener reads, and the task that beats."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    beats = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(beats), os.fdopen(reading, "rb"))
    task = asyncio.create_task(beat_forever(writing, 0.05))
    yield beats, task
    task.cancel()
    transport.close()
    os.close(writing)


async def test_a_loop_that_turns_is_heard(beating: tuple[asyncio.StreamReader, asyncio.Task[None]]) -> None:
    beats, _ = beating
    for _ in range(3):
        assert await asyncio.wait_for(beats.read(1), 10) == b"."


async def test_a_heart_that_stops_is_silence(beating: tuple[asyncio.StreamReader, asyncio.Task[None]]) -> None:
    beats, task = beating
    task.cancel()
    assert await asyncio.wait_for(silence(beats, 0.05), 10)


class Beats(asyncio.StreamReader):
    """Reads that go as told: a beat (``.``), none in time (``-``), or the end."""

    def __init__(self, reads: str) -> None:
        super().__init__()
        self._reads = iter(reads)

    async def read(self, n: int = -1) -> bytes:
        match next(self._reads, None):
            case None:
                return b""
            case "-":
                await asyncio.Event().wait()
        return b"."


@pytest.mark.parametrize(
    ("reads", "silent"), [("", False), ("...", False), ("-.-.-", False), ("--", True), ("..-.--", True)]
)
async def test_silence_is_two_halves_of_it_without_a_beat(reads: str, silent: bool) -> None:
    assert await silence(Beats(reads), 0.001) is silent


async def test_a_supervisor_that_does_not_read_holds_no_worker_up() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    task = asyncio.create_task(beat_forever(writing, 0.0))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()
    os.close(reading)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    os.close(writing)
