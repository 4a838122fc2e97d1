"""The store of one process: writes that wait together share a transaction, and who reads waits for no writer.

A transaction costs a write to the disk, on PostgreSQL a few round trips as well, however much it holds. So one thread
takes all that waits, commits it, and then takes what has come meanwhile: the more there is to do, the more goes into
each transaction, and their number per second has a bound that the load does not change.

On SQLite everything that waits shares the transaction. On PostgreSQL each kind of work has its own: kinds lock the same
rows, each in the order of its keys, and two kinds in one transaction would lock some a second time out of order, which
is what nodes deadlock by; and a row that many nodes want is held for a shorter time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from sidecar.store.batch import Operation, commit
from sidecar.store.engine import open_engine, sqlite_file
from sidecar.store.errors import StoreUnavailable, is_unavailable, unavailable
from sidecar.store.line import Line, Waiting, tell

MOST_IN_A_TRANSACTION = 512
MOST_WAITING = 4096

I = TypeVar("I")  # noqa: E741 - an item, beside R, its result
R = TypeVar("R")

_Write = tuple[Operation[Any, Any], Any]
_Query = Callable[[Connection], Any]

Told = Callable[[str, str, float], None]
"""Is told of each answer: ``read`` or ``write``, ``ok``, ``failed`` or ``unavailable``, and the seconds it took."""

_log = logging.getLogger(__name__)


class Store:
    """Opens nothing until it is first used, and opens again what was lost. Used from one event loop.

    ``healthy`` tells whether the last attempt went well, ``transactions`` how many write transactions there were.
    """

    def __init__(self, url: str, *, timeout: float = 5.0, told: Told | None = None) -> None:
        """``timeout`` is for how many seconds a caller waits at most; ``told`` hears how long each has waited.

        Raises:
            ValueError: the URL is not one of a store.
        """
        self.healthy = True
        self.transactions = 0
        self._timeout = timeout
        self._told = told
        self._shared = sqlite_file(url) is not None
        self._write_engine = open_engine(url, "write", timeout)
        self._read_engine = open_engine(url, "read", timeout)
        self._writes = Line[_Write]("store-write", self._commit, bound=MOST_WAITING, most=MOST_IN_A_TRANSACTION)
        self._reads = Line[_Query]("store-read", self._answer, bound=MOST_WAITING, most=1)

    async def run(self, operation: Operation[I, R], item: I, patience: float = 0.0) -> R:
        """Perform ``item`` in the next transaction, and return when it is committed.

        For ``patience`` seconds it begins none, but goes along with one that somebody else begins.

        Who is cancelled while waiting may find it done or not. It is not begun once nobody waits for it.

        Raises:
            StoreUnavailable: the store failed, or did not answer in time; whether it was committed is not known.
            Exception: what the operation returned or raised for this item; nothing of it was committed.
        """
        return cast("R", await self._timed("write", self._writes.wait_for((operation, item), self._timeout, patience)))

    async def read(self, query: Callable[[Connection], R]) -> R:
        """What ``query`` returns; it runs in a thread, can write nothing, and sees one state of the store.

        Raises:
            StoreUnavailable: the store failed, or did not answer in time.
            Exception: what the query raised.
        """
        return cast("R", await self._timed("read", self._reads.wait_for(query, self._timeout)))

    async def close(self) -> None:
        """Do what waits, and end; nothing more is taken."""
        for line, engine in ((self._writes, self._write_engine), (self._reads, self._read_engine)):
            await line.close(self._timeout)
            engine.dispose()

    async def _timed(self, access: str, answer: Awaitable[object]) -> object:
        began, outcome = time.monotonic(), "failed"
        try:
            result = await answer
            outcome = "ok"
            return result
        except StoreUnavailable:
            outcome = "unavailable"
            raise
        finally:
            if self._told is not None:
                self._told(access, outcome, time.monotonic() - began)

    def _commit(self, waiting: list[Waiting[_Write]]) -> None:
        kinds: dict[int, list[Waiting[_Write]]] = {}
        for one in waiting:
            kinds.setdefault(id(one.work[0]), []).append(one)
        groups = list(kinds.values())
        for together in [groups] if self._shared else [[group] for group in groups]:
            self._commit_together(together)

    def _commit_together(self, groups: list[list[Waiting[_Write]]]) -> None:
        self.transactions += 1
        waiting = [one for group in groups for one in group]
        try:
            results = commit(
                self._write_engine, [(group[0].work[0], [one.work[1] for one in group]) for group in groups]
            )
        except Exception as error:
            self._note(error)
            # Each gets an exception of its own: they gather the places where they are raised.
            tell(waiting, [_copy(error) for _ in waiting])
        else:
            self._note(None)
            tell(waiting, [result for group in results for result in group])

    def _answer(self, waiting: list[Waiting[_Query]]) -> None:
        try:
            with self._read_engine.connect() as connection:
                outcome = waiting[0].work(connection)
        except Exception as error:
            outcome = unavailable(error) if is_unavailable(error) else error
        self._note(outcome if isinstance(outcome, StoreUnavailable) else None)
        tell(waiting, [outcome])

    def _note(self, error: Exception | None) -> None:
        """Say in the log that the store fails, or works again."""
        healthy = error is None
        if healthy is not self.healthy:
            self.healthy = healthy
            _log.log(logging.INFO if healthy else logging.ERROR, "the store %s", "works again" if healthy else error)


def _copy(error: Exception) -> Exception:
    return StoreUnavailable(str(error)) if isinstance(error, StoreUnavailable) else error
