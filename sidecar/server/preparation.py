"""Where the heavy step before a call runs: parsing, rendering and tokenizing.

Requests run in lanes by the size of their bodies, so that none waits behind those that are much larger; the smallest
are prepared on the event loop. A lane prepares a few at a time, of clients in turns, and has places for those that
wait; one more is refused at once, which is kinder than to let it wait in vain. While a lane is full, whoever has most
requests waiting gives places up to the others.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from sidecar.exchange.earlier import Continued
from sidecar.exchange.plan import Prepare
from sidecar.exchange.planned import Plan
from sidecar.extproc.driver import Done
from sidecar.fairness import QueueFullError, Turns
from sidecar.responses.errors import ApiError
from sidecar.server.elsewhere import Elsewhere
from sidecar.server.forks import Forks

PrepareLarge = Callable[[Prepare], Awaitable[Plan | Continued]]
"""Makes the plan of a request whose body is not small."""

Job = TypeVar("Job")
Result = TypeVar("Result")

_TINY_BYTES = 2 * 1024
_SMALL_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class LaneSize:
    """Bodies of up to ``most_bytes`` are prepared so many ``at_once``; ``places`` counts those that wait as well."""

    most_bytes: float
    at_once: int
    places: int


LANES = (
    # On the loop: one takes less than a millisecond, and so does handing it to a thread and back. Several of one read
    # share a write to Envoy, which wakes Envoy once: that saves more than the turns of the loop cost others.
    LaneSize(_TINY_BYTES, at_once=4, places=2048),
    # In threads: to send so few bytes to another process would take longer than they do.
    LaneSize(_SMALL_BYTES, at_once=2, places=2048),
    # The others in processes of their own.
    LaneSize(256 * 1024, at_once=1, places=512),
    LaneSize(1024 * 1024, at_once=1, places=64),
    # The bodies that wait here take memory: at the largest size, 160 MB.
    LaneSize(inf, at_once=1, places=16),
)
"""A worker's lanes, smallest bodies first."""


class Lane(ABC, Generic[Job, Result]):
    """A way to do jobs, some at once and one after the other, and the places for those that wait."""

    def __init__(self, size: LaneSize) -> None:
        self.most_bytes = size.most_bytes
        self._turns = Turns(range(size.at_once), waiting=size.places - size.at_once)

    @property
    def waiting(self) -> int:
        """How many jobs wait for their turn."""
        return self._turns.waiting

    @abstractmethod
    def run(self, job: Job, client: Hashable) -> Awaitable[Result] | Done[Result]:
        """What ``job`` comes to or raises, done when it is the turn of ``client``.

        Where it waits and is cancelled before its turn, it gives its place back at once; later, when it is done.

        Raises:
            ApiError: ``capacity_unavailable``, there is no place.
        """

    async def _turn(self, client: Hashable) -> int:
        try:
            return await self._turns.take(client)
        except QueueFullError:
            message = "Too many requests of this size are waiting to be prepared."
            raise ApiError("capacity_unavailable", message) from None


class LaneOnTheLoop(Lane[Job, Result]):
    """Does jobs on the event loop: ``at_once`` in each of its turns, between which all else goes on."""

    def __init__(self, size: LaneSize, function: Callable[[Job], Result]) -> None:
        """``function`` does a job."""
        super().__init__(size)
        self._function = function

    def run(self, job: Job, client: Hashable) -> Awaitable[Result] | Done[Result]:
        """At once where it can be."""
        turn = self._turns.take_free(client)
        return self._wait(job, client) if turn is None else Done(self._do(job, turn))

    async def _wait(self, job: Job, client: Hashable) -> Result:
        return self._do(job, await self._turn(client))

    def _do(self, job: Job, turn: int) -> Result:
        asyncio.get_running_loop().call_soon(self._turns.give_back, turn)
        return self._function(job)


class LaneElsewhere(Lane[Job, Result]):
    """Has jobs done off the event loop."""

    def __init__(self, size: LaneSize, perform: Callable[[Job], Awaitable[Result]]) -> None:
        """``perform`` does a job; it is never cancelled."""
        super().__init__(size)
        self._perform = perform
        self._running: set[asyncio.Task[Result]] = set()

    async def run(self, job: Job, client: Hashable) -> Result:
        """By and by."""
        turn = await self._turn(client)

        def give_back(task: asyncio.Task[Result]) -> None:
            self._running.discard(task)
            self._turns.give_back(turn)
            # Whoever was to be told may be gone; asyncio would log the refusal as a fault of ours, with its traceback.
            task.exception()

        running = asyncio.ensure_future(self._carry_out(job))
        self._running.add(running)
        running.add_done_callback(give_back)
        return await asyncio.shield(running)

    async def _carry_out(self, job: Job) -> Result:
        return await self._perform(job)


class Preparation(Generic[Job, Result]):
    """The lanes of one worker."""

    def __init__(self, lanes: Sequence[Lane[Job, Result]]) -> None:
        """``lanes`` come in the order of their sizes; the last takes any body."""
        self._lanes = lanes

    @property
    def waiting(self) -> Sequence[int]:
        """How many jobs wait in each lane."""
        return [lane.waiting for lane in self._lanes]

    def run(self, job: Job, body_bytes: int, client: Hashable) -> Awaitable[Result] | Done[Result]:
        """What ``job`` comes to or raises, for a request of ``client`` whose body has so many bytes.

        Raises:
            ApiError: ``capacity_unavailable``, there is no place for it.
        """
        lane = next(lane for lane in self._lanes if body_bytes <= lane.most_bytes)
        return lane.run(job, client)


def in_threads(executor: Executor, function: Callable[[Job], Result]) -> Callable[[Job], Awaitable[Result]]:
    """Let the threads of ``executor`` do jobs by ``function``."""

    async def perform(job: Job) -> Result:
        return await asyncio.get_running_loop().run_in_executor(executor, function, job)

    return perform


def in_forks(forks: Forks, elsewhere: Elsewhere) -> PrepareLarge:
    """Let ``forks``, which do the work of ``elsewhere``, make plans."""

    async def perform(ask: Prepare) -> Plan | Continued:
        written = await forks.call(elsewhere.call_of(ask), ask.facts.request.body)
        return elsewhere.read(written, ask.facts)

    return perform


@contextmanager
def lanes_of_a_worker(large: PrepareLarge) -> Iterator[Preparation[Prepare, Plan | Continued]]:
    """All lanes: for tiny bodies, for small ones in threads that end with the context, for others done by ``large``."""
    tiny, small, *others = LANES
    with ThreadPoolExecutor(small.at_once, thread_name_prefix="prepare") as executor:
        yield Preparation(
            [
                LaneOnTheLoop(tiny, Prepare.plan),
                LaneElsewhere(small, in_threads(executor, Prepare.plan)),
                *(LaneElsewhere(size, large) for size in others),
            ]
        )
