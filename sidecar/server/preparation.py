"""Where the heavy step before a call runs: parsing, rendering and tokenizing, off the event loop.

Requests run in lanes by the size of their bodies, so that none waits behind those that are much larger. A lane has a
few threads and places for those that wait; one more is refused at once, which is kinder than to let it wait in vain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import inf
from threading import BoundedSemaphore
from typing import TypeVar

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
    """Threads that take one job after the other, and the places for what they have not finished."""

    def __init__(self, size: LaneSize, executor: ThreadPoolExecutor) -> None:
        self.most_bytes = size.most_bytes
        self._executor = executor
        self._places = BoundedSemaphore(size.places)

    def submit(self, job: Callable[[], Result]) -> Future[Result]:
        """Run ``job`` when its turn comes; cancelled before that, it gives its place back at once.

        Raises:
            ApiError: ``capacity_unavailable``, there is no place.
        """
        if not self._places.acquire(blocking=False):
            raise ApiError("capacity_unavailable", "Too many requests of this size are waiting to be prepared.")
        # A cancelled job would stand in the queue until its turn, and its request's body with it.
        waiting = [job]

        def run() -> Result:
            return waiting.pop()()

        def give_back(_: Future[Result]) -> None:
            waiting.clear()
            self._places.release()

        future = self._executor.submit(run)
        future.add_done_callback(give_back)
        return future


class Preparation:
    """The lanes of one worker."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        """``lanes`` come in the order of their sizes; the last takes any body."""
        self._lanes = lanes

    async def run(self, body_bytes: int, job: Callable[[], Result]) -> Result:
        """What ``job`` returns or raises, for a request whose body has so many bytes.

        Raises:
            ApiError: ``capacity_unavailable``, there is no place for it.
        """
        lane = next(lane for lane in self._lanes if body_bytes <= lane.most_bytes)
        return await asyncio.wrap_future(lane.submit(job))


@contextmanager
def preparation_threads(sizes: Sequence[LaneSize] = LANES) -> Iterator[Preparation]:
    """Threads for one worker, ended with the context."""
    with ExitStack() as stack:
        executors = [ThreadPoolExecutor(size.threads, thread_name_prefix="prepare") for size in sizes]
        yield Preparation([Lane(size, stack.enter_context(of)) for size, of in zip(sizes, executors, strict=True)])
