"""A pool of processes: calls wait for one in a fair queue, and what is killed is replaced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Any, Self, TypeVar

from sidecar.fairness import Turns
from sidecar.killable.errors import CrashedError
from sidecar.killable.process import KillableProcess

Result = TypeVar("Result")

# Between attempts to start a process, where the machine lets none be started.
_RETRY_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Pool:
    """``size`` processes, started when the context is entered and ended with it.

    Each calls ``prepare`` at its start, and may from then on take ``memory`` bytes (of address space) more. At most
    ``waiting`` calls wait for a process. Functions, their arguments and what they return are pickled, so ``prepare``
    and the functions are ones of modules.
    """

    def __init__(
        self, size: int, *, memory: int, prepare: Callable[[], object] | None = None, waiting: int = 256
    ) -> None:
        self._size = size
        self._memory = memory
        self._prepare = prepare
        self._processes: set[KillableProcess] = set()
        self._turns: Turns[KillableProcess] = Turns(waiting=waiting)
        self._replacing: set[asyncio.Task[None]] = set()
        self._ended = False

    async def __aenter__(self) -> Self:
        """Start the processes; raises what ``prepare`` raises."""
        try:
            async with asyncio.TaskGroup() as starting:
                for _ in range(self._size):
                    starting.create_task(self._start())
        except BaseExceptionGroup as failures:
            await self._end()
            raise failures.exceptions[0] from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end()

    @property
    def pids(self) -> frozenset[int]:
        """The ids of the processes."""
        return frozenset(process.pid for process in self._processes)

    async def run(
        self, function: Callable[..., Result], *arguments: Any, seconds: float, owner: Hashable = None
    ) -> Result:
        """What ``function`` returns in a process of the pool; raises what it raises.

        ``seconds`` is the processor time that it may take, and an eighth of how long it may last once it has a process;
        the wait for one is the caller's to bound. ``owner`` is on whose behalf it is: owners take turns. When the task
        that waits here is cancelled, the process is killed.

        Raises:
            OverrunError: it took more time, or more memory, than it may.
            CrashedError: the process ended by itself, or the pool has ended.
            QueueFullError: too many calls wait; see :class:`Turns`.
        """
        process = await self._take(owner)
        try:
            result: Result = await process.call(function, arguments, seconds)
        finally:
            self._give_back(process)
        return result

    async def _take(self, owner: Hashable) -> KillableProcess:
        # One that is free may have ended by itself.
        while not (process := await self._turns.take(owner)).is_ready:
            self._give_back(process)
        return process

    def _give_back(self, process: KillableProcess) -> None:
        if self._ended:
            return
        if not process.is_ready:
            replacing = asyncio.create_task(self._replace(process))
            self._replacing.add(replacing)
            replacing.add_done_callback(self._replacing.discard)
            return
        self._turns.give_back(process)

    async def _replace(self, process: KillableProcess) -> None:
        await process.end()
        self._processes.discard(process)
        while True:
            try:
                return await self._start()
            except Exception as error:
                _log.warning("a process of a pool could not be started: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _start(self) -> None:
        process = await KillableProcess.start(self._memory, self._prepare)
        self._processes.add(process)
        self._give_back(process)

    async def _end(self) -> None:
        self._ended = True
        self._turns.refuse_all(CrashedError("the pool has ended"))
        replacing = list(self._replacing)
        for task in replacing:
            task.cancel()
        await asyncio.gather(*replacing, return_exceptions=True)
        await asyncio.gather(*(process.end() for process in self._processes))
