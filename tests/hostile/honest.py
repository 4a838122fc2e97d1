"""Honest clients beside an attack: streams at a reader's pace and short requests, and how long they had to wait."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from stack.local import LocalStack
from stack.paths import ROOT
from tests.e2e.client import Client, script
from tests.hostile.attacks import KEY_VARIABLE, REMOTE_VARIABLE

STREAMS = 32
PACE = 0.05
"""Seconds between two tokens of a stream."""
_TOKENS = 40
_SHORT_PAUSE = 0.1
_DELTA = b"response.output_text.delta"
_Request = Callable[[], Awaitable[None]]


@dataclass
class Waits:
    """What honest clients met: seconds between two tokens of a stream, seconds per short request, and failures."""

    gaps: list[float] = field(default_factory=list)
    short: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def p99(values: Sequence[float]) -> float:
    """The value that one of a hundred exceeds."""
    return sorted(values)[max(0, int(len(values) * 0.99) - 1)]


@asynccontextmanager
async def honest_clients(stack: LocalStack, large: dict[str, Any] | None = None) -> AsyncIterator[Waits]:
    """Clients at work until the context is left; each ends what it has begun. ``large`` is what one of them sends."""
    seen = Waits()
    leaving = asyncio.Event()
    with _first_in_line():
        async with _at_work(stack, seen, leaving, large):
            yield seen


@asynccontextmanager
async def _at_work(
    stack: LocalStack, seen: Waits, leaving: asyncio.Event, large: dict[str, Any] | None
) -> AsyncIterator[None]:
    async with Client(stack) as client, asyncio.TaskGroup() as clients:
        for _ in range(STREAMS):
            clients.create_task(_repeat(_read(client, seen), seen, leaving))
        clients.create_task(_repeat(_ask(client, seen), seen, leaving))
        if large is not None:
            clients.create_task(_repeat(_send(client, large), seen, leaving))
        try:
            yield
        finally:
            leaving.set()


@contextmanager
def _first_in_line() -> Iterator[None]:
    """Let this process have a processor whenever it wants one, if the system allows that.

    It stands for clients on other machines, whose waits are the node's doing alone.
    """
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


class _Failure(Exception):
    """An honest request that was not served."""


def _read(client: Client, seen: Waits) -> _Request:
    async def read() -> None:
        async with client.stream(script({"repeat": [_TOKENS, "word ", PACE]})) as stream:
            received, last = b"", 0.0
            async for piece in stream.response.aiter_bytes():
                received += piece
                if _DELTA in piece:
                    now = time.monotonic()
                    if last:
                        seen.gaps.append(now - last)
                    last = now
            if stream.response.status_code != 200 or b"event: response.completed" not in received:
                raise _Failure(f"{stream.response.status_code} {received[-300:]!r}")

    return read


def _ask(client: Client, seen: Waits) -> _Request:
    body = script("ok")

    async def ask() -> None:
        began = time.monotonic()
        answer = await client.ask(body)
        seen.short.append(time.monotonic() - began)
        if answer.status_code != 200:
            raise _Failure(answer.text)
        await asyncio.sleep(_SHORT_PAUSE)

    return ask


def _send(client: Client, body: dict[str, Any]) -> _Request:
    async def send() -> None:
        answer = await client.ask(body)
        if answer.status_code != 200:
            raise _Failure(answer.text)

    return send


async def _repeat(request: _Request, seen: Waits, leaving: asyncio.Event) -> None:
    while not leaving.is_set():
        try:
            await request()
        except (_Failure, httpx2.TransportError) as failure:
            seen.failures.append(repr(failure))


@asynccontextmanager
async def under_attack(
    stack: LocalStack, names: Sequence[str], seconds: float, remote: str = "http://127.0.0.1:9/"
) -> AsyncIterator[Process]:
    """The process of the attackers, which has made its requests and begins to send; it is ended with the context."""
    attackers = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.hostile.attacks",
        str(stack.port),
        str(seconds),
        *names,
        cwd=ROOT,
        stdout=PIPE,
        # What they use of the processors must not count as the honest clients'.
        start_new_session=True,
        env={**os.environ, KEY_VARIABLE: stack.api_key, REMOTE_VARIABLE: remote},
    )
    try:
        assert attackers.stdout is not None
        assert await attackers.stdout.readline() == b"ready\n"
        yield attackers
    finally:
        with contextlib.suppress(ProcessLookupError):
            attackers.kill()
        await attackers.wait()


async def answers(attackers: Process) -> dict[str, Counter[str]]:
    """What the attacks were answered, when all of them have been."""
    assert attackers.stdout is not None
    found: dict[str, dict[str, int]] = json.loads(await attackers.stdout.read())
    return {name: Counter(counts) for name, counts in found.items()}


def forget_peaks(pids: Sequence[int]) -> None:
    """Let :func:`peak` begin anew, where the system lets us (proc(5), ``clear_refs``)."""
    for pid in _with_forks(pids):
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak(pids: Sequence[int]) -> int:
    """The largest resident memory that one of the processes, or of their forks, had, in bytes."""
    return max(_status(pid, "VmHWM") for pid in _with_forks(pids))


def resident(pids: Sequence[int]) -> int:
    """The resident memory of the processes now, in bytes."""
    return sum(_status(pid, "VmRSS") for pid in pids)


def _with_forks(pids: Sequence[int]) -> list[int]:
    """The processes and all below them that run the same command."""
    found = list(pids)
    for pid in found:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        for task in Path(f"/proc/{pid}/task").iterdir():
            children = map(int, (task / "children").read_text().split())
            found += [child for child in children if Path(f"/proc/{child}/cmdline").read_bytes() == command]
    return found


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


async def served(stack: LocalStack) -> None:
    """Wait until every worker serves an honest request again."""
    async with Client(stack) as client:

        async def all_served() -> Counter[int]:
            many = await asyncio.gather(*(client.ask(script("ok")) for _ in range(8)))
            return Counter(answer.status_code for answer in many)

        async with asyncio.timeout(30):
            while await all_served() != {200: 8}:
                await asyncio.sleep(0.1)
