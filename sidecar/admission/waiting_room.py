"""Where requests wait for what their organization has too little of, rather than being refused at once.

Those of one organization for one model stand in a line: only its first tries, again and again, so that none overtakes
another and a long line costs no more than a short one. Lines do not wait for each other. The places are few; where all
are taken, the organization with most requests waiting gives one up to an organization with fewer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from sidecar.admission.entries import Refused
from sidecar.admission.periods import SECOND
from sidecar.fairness import FairQueue, QueueFullError

Admitted = TypeVar("Admitted")
"""What an attempt comes to that is not refused."""

LineName = tuple[str, str]
"""An organization and a model."""

# What other workers give back is not told here.
_LONGEST_PAUSE_SECONDS = 1.0


_Attempt = Callable[[], Awaitable[Admitted | Refused]]


class WaitingRoom(Generic[Admitted]):
    """At most ``places`` requests wait, each for at most ``seconds``; with 0, none waits."""

    def __init__(self, seconds: float, places: int = 1024) -> None:
        self._seconds = seconds
        self._places = FairQueue[_Waiting](places)
        self._lines: dict[LineName, deque[_Waiting]] = {}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._places)

    async def admit(self, line: LineName, attempt: _Attempt[Admitted]) -> Admitted | Refused:
        """What ``attempt`` comes to in the end; who is cancelled gives the place back."""
        if line in self._lines:
            return await self._wait(line, attempt, None)
        outcome = await attempt()
        return await self._wait(line, attempt, outcome) if self._helps(outcome) else outcome

    def nudge(self, organization: str) -> None:
        """Something has been given back to ``organization``."""
        for (owner, _), line in self._lines.items():
            if owner == organization:
                line[0].wake.set()

    def _helps(self, outcome: object) -> bool:
        """Whether it helps to wait."""
        return bool(self._seconds) and isinstance(outcome, Refused) and outcome.retry_after_us is not None

    async def _wait(
        self, name: LineName, attempt: _Attempt[Admitted], outcome: Admitted | Refused | None
    ) -> Admitted | Refused:
        waiting = _Waiting()
        try:
            displaced = self._places.add(name[0], waiting)
        except QueueFullError:
            return outcome or await attempt()
        if displaced is not None:
            displaced.give_up()
        line = self._lines.setdefault(name, deque())
        line.append(waiting)
        try:
            async with asyncio.timeout(self._seconds):
                while not waiting.given_up:
                    if line[0] is waiting:
                        outcome = await attempt()
                        if not self._helps(outcome):
                            return outcome
                    await waiting.pause(outcome if line[0] is waiting else None)
        except TimeoutError:
            pass
        finally:
            self._leave(name, waiting)
        return outcome or await attempt()

    def _leave(self, name: LineName, waiting: _Waiting) -> None:
        self._places.discard(name[0], waiting)
        line = self._lines[name]
        line.remove(waiting)
        if line:
            line[0].wake.set()
        else:
            del self._lines[name]


class _Waiting:
    """One who waits. ``given_up`` is whether its place was needed for another."""

    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.given_up = False

    def give_up(self) -> None:
        self.given_up = True
        self.wake.set()

    async def pause(self, refused: object) -> None:
        """Wait to be woken, at most as long as it takes before another attempt is worth it."""
        seconds = None
        if isinstance(refused, Refused) and refused.retry_after_us is not None:
            seconds = min(refused.retry_after_us / SECOND, _LONGEST_PAUSE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wake.wait()
        self.wake.clear()
