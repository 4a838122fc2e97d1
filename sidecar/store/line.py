"""A thread for what would hold up the event loop, and the bounded line of those who wait for it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from math import inf
from typing import Generic, TypeVar

from sidecar.store.errors import StoreUnavailable

Work = TypeVar("Work")


class Waiting(Generic[Work]):
    """One piece of work, and the future of who waits for it."""

    __slots__ = ("future", "work")

    def __init__(self, work: Work, future: asyncio.Future[object]) -> None:
        self.work = work
        self.future = future


class Line(Generic[Work]):
    """At most ``bound`` wait; the thread takes up to ``most`` of them at a time, in the order of their coming.

    ``handle`` runs in the thread, which is started by the first that comes, and calls :func:`tell` for all it is given.
    """

    def __init__(self, name: str, handle: Callable[[list[Waiting[Work]]], None], *, bound: int, most: int) -> None:
        self._handle = handle
        self._bound = bound
        self._most = most
        self._waiting: deque[Waiting[Work]] = deque()
        # When the first of those that wait has no more patience, on the monotonic clock.
        self._due = inf
        self._changed = threading.Condition()
        self._closed = False
        # It must not keep alive a process that ends while the store hangs.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    async def wait_for(self, work: Work, seconds: float, patience: float = 0.0) -> object:
        """What ``work`` comes to. For ``patience`` seconds it waits for others to be taken with.

        Raises:
            StoreUnavailable: too many wait, ``seconds`` have passed, or the line is closed.
        """
        waiting = Waiting(work, asyncio.get_running_loop().create_future())
        self._add(waiting, time.monotonic() + patience)
        try:
            await asyncio.wait((waiting.future,), timeout=seconds)
            if not waiting.future.done():
                raise StoreUnavailable(f"no answer within {seconds:g} s")
            return waiting.future.result()
        finally:
            # Work that nobody waits for any more is not begun.
            waiting.future.cancel()

    async def close(self, seconds: float) -> None:
        """Let the thread handle all that waits, and end; after ``seconds`` it is left to itself."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join, seconds)

    def _add(self, waiting: Waiting[Work], due: float) -> None:
        with self._changed:
            if self._closed:
                raise StoreUnavailable("it is closed")
            if len(self._waiting) >= self._bound:
                raise StoreUnavailable(f"{self._bound} wait for it already")
            self._waiting.append(waiting)
            if due < self._due:
                self._due = due
                self._changed.notify()
            if self._thread.ident is None:
                self._thread.start()

    def _run(self) -> None:
        while taken := self._take():
            wanted = [waiting for waiting in taken if not waiting.future.done()]
            if wanted:
                self._handle(wanted)

    def _take(self) -> list[Waiting[Work]]:
        """Those at the head of the line, once somebody has no more patience; none when it is closed and empty."""
        with self._changed:
            while not self._closed and (pause := self._due - time.monotonic()) > 0:
                self._changed.wait(None if pause == inf else pause)
            taken = list(islice(self._waiting, self._most))
            for _ in taken:
                self._waiting.popleft()
            self._due = 0.0 if self._waiting else inf
            return taken


def tell(waiting: Sequence[Waiting[Work]], outcomes: Sequence[object]) -> None:
    """Give each that waits its outcome, from any thread; an exception is raised to it."""
    # A loop that has been closed has nobody left who waits.
    with suppress(RuntimeError):
        waiting[0].future.get_loop().call_soon_threadsafe(_set_all, waiting, outcomes)


def _set_all(waiting: Sequence[Waiting[Work]], outcomes: Sequence[object]) -> None:
    for one, outcome in zip(waiting, outcomes, strict=True):
        if one.future.done():
            continue
        if isinstance(outcome, Exception):
            one.future.set_exception(outcome)
        else:
            one.future.set_result(outcome)
