"""Where the heavy step before a call runs: parsing, rendering and tokenizing, off the event loop.

Requests run in lanes by the size of their bodies, so that none waits behind those that are much larger. A lane has a
few threads, which clients take in turns, and places for those that wait; one more is refused at once, which is kinder
than to let it wait in vain. While a lane is full, whoever has most requests waiting gives places up to the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from sidecar.fairness import QueueFullError, Turns
from sidecar.responses.errors import ApiError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LaneSize:
    """Bodies of up to ``most_bytes`` are prepared by ``threads``; ``places`` counts those that run or wait."""

    most_bytes: float
    threads: int
    places: int


LANES = (
    LaneSize(256 * 1024, threads=2, places=512),
    LaneSize(1024 * 1024, threads=1, places=64),
    # The bodies that wait here take memory: at the largest size, 160 MB.
    LaneSize(inf, threads=1, places=16),
)
"""A worker's lanes, smallest bodies first. Preparing 256 KiB takes some tens of milliseconds."""


class Lane:
    """Threads that take one job after the other, and the places for those that wait."""

    def __init__(self, size: LaneSize, executor: ThreadPoolExecutor) -> None:
        """``executor`` has the threads of ``size``."""
        self.most_bytes = size.most_bytes
        self._executor = executor
        self._threads = Turns(range(size.threads), waiting=size.places - size.threads)

    async def run(self, job: Callable[[], Result], client: Hashable) -> Result:
        """What ``job`` returns or raises, run when it is the turn of ``client``.

        Cancelled before that, it gives its place back at once; later, when its thread is done with it.

        Raises:
            ApiError: ``capacity_unavailable``, there is no place.
        """
        try:
            thread = await self._threads.take(client)
        except QueueFullError:
            message = "Too many requests of this size are waiting to be prepared."
            raise ApiError("capacity_unavailable", message) from None
        loop = asyncio.get_running_loop()

        def give_back(_: Future[Result]) -> None:
            loop.call_soon_threadsafe(self._threads.give_back, thread)

        running = self._executor.submit(job)
        running.add_done_callback(give_back)
        return await asyncio.wrap_future(running)


class Preparation:
    """The lanes of one worker."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        """``lanes`` come in the order of their sizes; the last takes any body."""
        self._lanes = lanes

    async def run(self, job: Callable[[], Result], body_bytes: int, client: Hashable) -> Result:
        """What ``job`` returns or raises, for a request of ``client`` whose body has so many bytes.

        Raises:
            ApiError: ``capacity_unavailable``, there is no place for it.
        """
        lane = next(lane for lane in self._lanes if body_bytes <= lane.most_bytes)
        return await lane.run(job, client)


@contextmanager
def preparation_threads(sizes: Sequence[LaneSize] = LANES) -> Iterator[Preparation]:
    """Threads for one worker, ended with the context."""
    with ExitStack() as stack:
        executors = [ThreadPoolExecutor(size.threads, thread_name_prefix="prepare") for size in sizes]
        yield Preparation([Lane(size, stack.enter_context(of)) for size, of in zip(sizes, executors, strict=True)])
