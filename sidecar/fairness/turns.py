"""Places that are given to those who wait for one, in turns. Used by one event loop, and by no other thread."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from sidecar.fairness.queue import FairQueue, QueueFullError

Place = TypeVar("Place")


class Turns(Generic[Place]):
    """``places`` are free at first; at most ``waiting`` takers wait for one, in a :class:`FairQueue`."""

    def __init__(self, places: Iterable[Place] = (), *, waiting: int) -> None:
        self._free = list(places)
        self._queue: FairQueue[asyncio.Future[Place]] = FairQueue(waiting)

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._queue)

    async def take(self, owner: Hashable) -> Place:
        """A place, which :meth:`give_back` returns; at once where one is free.

        Raises:
            QueueFullError: too many wait, or this one's room was needed for an owner that has fewer waiting.
        """
        turn: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        displaced = self._queue.add(owner, turn)
        if displaced is not None and not displaced.done():
            displaced.set_exception(QueueFullError())
        self._hand_out()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._queue.discard(owner, turn)
            elif turn.exception() is None:
                self.give_back(turn.result())
            raise

    def take_free(self, owner: Hashable) -> Place | None:
        """A place that is free, and so nobody waits for; ``None`` where there is none."""
        if not self._free:
            return None
        self._queue.note_turn(owner)
        return self._free.pop()

    def give_back(self, place: Place) -> None:
        """``place`` is free, or is a new one."""
        self._free.append(place)
        self._hand_out()

    def refuse_all(self, error: Exception) -> None:
        """Whoever waits gets ``error``."""
        while len(self._queue):
            turn = self._queue.pop()
            if not turn.done():
                turn.set_exception(error)

    def _hand_out(self) -> None:
        while self._free and len(self._queue):
            turn = self._queue.pop()
            # One that was cancelled has yet to run, and to leave the queue.
            if not turn.done():
                turn.set_result(self._free.pop())
