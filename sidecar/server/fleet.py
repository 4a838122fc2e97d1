"""The workers of one configuration: keeps as many running as it says, and passes a stop on to them.

A worker tells on its standard output that it listens (:data:`READY`), or in words why its configuration cannot be used.
Then it shows there that its event loop turns (:mod:`sidecar.server.heartbeat`); one that is stuck is ended. A worker
that has ended is started again, after a pause that grows; when none can be started any more, the fleet ends too, and
says so.

A fleet that is to take another's place is on trial until all its workers listen: the first that does not ends it. The
other then retires: its workers end when the streams have that they serve.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from sidecar.server.heartbeat import silence

READY = b"ready\n"
"""What a worker writes on its standard output once it listens."""
REFUSED = 2
"""The exit status of a worker whose configuration cannot be used, and then of its fleet."""
FAILED = 1
"""The exit status of a fleet whose workers cannot be started."""
STOP_MARGIN_SECONDS = 10.0
"""What a stopping worker may take on top of the drain, for the notice to Envoy and the last words."""

STACKS_SIGNAL = signal.SIGUSR1
"""On it a worker that serves writes the stacks of its threads to the log: places in the code, no values."""
RETIRE_SIGNAL = signal.SIGUSR2
"""On it a worker that listens serves the streams that it has, and ends."""

_STACKS_SECONDS = 0.5
# A worker that has served this long was well; its next restart is immediate again.
_HEALTHY_SECONDS = 10.0
_FIRST_DELAY_SECONDS = 0.1
_LONGEST_DELAY_SECONDS = 5.0
# While no worker serves, so many starts of each may fail one after another.
_MOST_FAILED_STARTS = 5

_log = logging.getLogger(__name__)


class _End(NamedTuple):
    """How a worker has ended: ``served`` is for how many seconds, ``None`` where it never did; ``words`` say why."""

    served: float | None
    refused: bool
    words: str


class Fleet:
    """The workers, and what becomes of those that end."""

    def __init__(
        self,
        workers: int,
        stop_seconds: float,
        silence_seconds: float,
        start: Callable[[int], Awaitable[Process]],
        ended: Callable[[int], None] = lambda index: None,
        *,
        listens: Callable[[int, Process], None] = lambda index, worker: None,
        on_trial: bool = False,
    ) -> None:
        """``start`` starts a worker by its index, ``listens`` is told that it does, ``ended`` that it is no more.

        A stopping one may take ``stop_seconds``, one that is silent for ``silence_seconds`` is stuck.
        """
        self._workers = workers
        self._stop_seconds = stop_seconds
        self._silence_seconds = silence_seconds
        self._start = start
        self._ended = ended
        self._listens = listens
        self._on_trial = on_trial
        self._running: dict[int, Process] = {}
        self._serving: set[int] = set()
        self._failed_starts = 0
        self._ever_served = False
        self._retired = False
        self._stopping = asyncio.Event()
        self._complete = asyncio.Event()
        self._status = 0
        self.refusal = ""
        """Why a trial failed."""
        self.refused = False
        """Whether a worker could not use the configuration; else one has ended that another time may not."""

    async def run(self) -> int:
        """Keep all workers running until ``stop``, or until it makes no sense; the exit status.

        After ``retire`` until the last has ended.
        """
        async with asyncio.TaskGroup() as keepers:
            for index in range(self._workers):
                keepers.create_task(self._keep(index))
        return self._status

    async def complete(self) -> None:
        """Wait until all workers listen at once for the first time."""
        await self._complete.wait()

    def accept(self) -> bool:
        """End the trial: all workers take their places, and those that end from now on are started again.

        Not where it has failed after all, by a worker that listened and has ended since; whether it has not.
        """
        if self.refusal:
            return False
        self._on_trial = False
        for index in sorted(self._serving):
            self._listens(index, self._running[index])
        return True

    def retire(self) -> None:
        """Let the workers serve the streams that they have, and end; none is started again."""
        self._retired = True
        for index, worker in self._running.items():
            if worker.returncode is None:
                with suppress(ProcessLookupError):
                    worker.send_signal(RETIRE_SIGNAL if index in self._serving else signal.SIGTERM)

    def stop(self) -> None:
        """Let the workers drain; when called again, end them at once."""
        if self._stopping.is_set():
            self._kill()
            return
        self._stopping.set()
        for worker in self._alive():
            worker.terminate()
        asyncio.get_running_loop().call_later(self._stop_seconds, self._kill)

    def _kill(self) -> None:
        for worker in self._alive():
            worker.kill()

    def _alive(self) -> list[Process]:
        return [worker for worker in self._running.values() if worker.returncode is None]

    async def _keep(self, index: int) -> None:
        """Run the worker ``index``, again and again, until ``stop``."""
        delay = _FIRST_DELAY_SECONDS
        while True:
            end = await self._run_once(index)
            self._ended(index)
            if self._stopping.is_set() or self._retired:
                return
            if self._on_trial:
                if not self.refusal:
                    self.refusal = end.words if end.refused else f"worker {index} {end.words}"
                    self.refused = end.refused
                self._give_up(REFUSED)
                return
            if end.served is None:
                self._count_failed_start(index, end)
            if self._stopping.is_set():
                return
            healthy = end.served is not None and end.served > _HEALTHY_SECONDS
            delay = _FIRST_DELAY_SECONDS if healthy else min(delay * 2, _LONGEST_DELAY_SECONDS)
            _log.error("worker %d %s; starting it again in %.1f s", index, end.words, delay)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)
            if self._stopping.is_set() or self._retired:
                return

    def _count_failed_start(self, index: int, end: _End) -> None:
        """End the fleet where it makes no sense to go on; a worker that serves is never ended for another."""
        self._failed_starts += 1
        if end.refused and not self._ever_served:
            print(end.words, file=sys.stderr)
            self._give_up(REFUSED)
        elif not self._serving and self._failed_starts >= _MOST_FAILED_STARTS * self._workers:
            _log.critical("worker %d %s; no worker could be started, so the sidecar ends", index, end.words)
            self._give_up(FAILED)

    def _give_up(self, status: int) -> None:
        self._status = status
        self.stop()

    async def _run_once(self, index: int) -> _End:
        """Start the worker ``index`` and wait for its end."""
        try:
            worker = self._running[index] = await self._start(index)
        except OSError as error:
            return _End(None, False, f"could not be started ({error})")
        if self._stopping.is_set() or self._retired:
            worker.terminate()
        assert worker.stdout is not None
        told = await worker.stdout.readline()
        if told != READY:
            words = (told + await worker.stdout.read()).decode(errors="replace").strip()
            status = await worker.wait()
            return _End(None, status == REFUSED, words or f"ended at its start with status {status}")
        served_from = time.monotonic()
        self._serving.add(index)
        self._ever_served, self._failed_starts = True, 0
        if len(self._serving) == self._workers:
            self._complete.set()
        # One that was starting when its fleet retired came to listen after those that have its place now.
        if not self._on_trial and not self._retired:
            self._listens(index, worker)
        stuck = await silence(worker.stdout, self._silence_seconds)
        if stuck:
            await self._end_stuck(worker, index)
        status = await worker.wait()
        self._serving.discard(index)
        words = "has been ended because its loop was stuck" if stuck else f"ended with status {status}"
        return _End(time.monotonic() - served_from, False, words)

    async def _end_stuck(self, worker: Process, index: int) -> None:
        _log.error("worker %d: its loop has been stuck for %g s; the stacks follow", index, self._silence_seconds)
        # It may end by itself meanwhile.
        with suppress(ProcessLookupError):
            worker.send_signal(STACKS_SIGNAL)
            await asyncio.sleep(_STACKS_SECONDS)
            worker.kill()
