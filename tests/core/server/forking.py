"""A program that forks while it has one thread, as a worker does: ``python -m tests.core.server.forking NAME``."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable

from sidecar.killable import CrashedError
from sidecar.responses.errors import ApiError
from sidecar.server.forks import Forks


def work(order: str, data: bytes) -> bytes:
    """What is ordered."""
    match order:
        case "echo":
            return data
        case "pid":
            return str(os.getpid()).encode()
        case "niceness":
            return str(os.nice(0)).encode()
        case "refuse":
            raise ApiError("invalid_request", "bad", "input")
        case "crash":
            os._exit(7)
        case "sleep":
            time.sleep(60)
    raise AssertionError(order)


async def echo(forks: Forks) -> None:
    """Megabytes go both ways."""
    data = os.urandom(5_000_000)
    assert await forks.call("echo", data) == data


async def reuse(forks: Forks) -> None:
    """Calls one after the other go to one fork, calls at the same time to several."""
    first, second = await forks.call("pid", b""), await forks.call("pid", b"")
    assert first == second != str(os.getpid()).encode()
    assert len({*await asyncio.gather(*(forks.call("pid", b"") for _ in range(3)))}) == 3


async def niceness(forks: Forks) -> None:
    """A fork gives way."""
    assert int(await forks.call("niceness", b"")) > os.nice(0)


async def refusal(forks: Forks) -> None:
    """What is raised there is raised here, and the fork goes on."""
    pid = await forks.call("pid", b"")
    try:
        await forks.call("refuse", b"")
    except ApiError as error:
        assert (error.code, error.message, error.param) == ("invalid_request", "bad", "input")
        assert await forks.call("pid", b"") == pid
        return
    raise AssertionError("nothing was raised")


async def _is_lost(forks: Forks, order: str) -> None:
    pid = await forks.call("pid", b"")
    try:
        await forks.call(order, b"")
    except CrashedError:
        assert await forks.call("pid", b"") != pid
        return
    raise AssertionError("nothing was raised")


async def crash(forks: Forks) -> None:
    """Another takes the place of one that ended."""
    await _is_lost(forks, "crash")


async def overrun(forks: Forks) -> None:
    """One that takes too long ends."""
    await _is_lost(forks, "sleep")


async def busy(forks: Forks) -> None:
    """Tell the id of a fork, then let it be at work for long."""
    print((await forks.call("pid", b"")).decode(), flush=True)
    await forks.call("sleep", b"")


TASKS: dict[str, Callable[[Forks], Awaitable[None]]] = {
    task.__name__: task for task in (echo, reuse, niceness, refusal, crash, overrun, busy)
}


async def _main(name: str, forks: Forks) -> None:
    async with forks:
        await TASKS[name](forks)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Forks(work, seconds=1.0 if sys.argv[1] == "overrun" else 100.0)))
