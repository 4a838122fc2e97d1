"""The spool: what a node admits while the store does not answer, in a SQLite file of its own, until it can be moved.

It has the store's own tables and is booked by the same ledger, so a reservation in it is as durable, and is settled as
exactly once. When the store answers again, what is settled is moved there, each reservation with its settlement in one
transaction, and then removed here. A move that is repeated changes nothing.

Limits are judged by what the node knows: the terms, credits and used quotas of the organizations that it served in the
last ten minutes, copied when one is new and every half minute, and buckets that are full when they are first needed. So
in an outage each node may grant each organization, beyond what other nodes grant, one full bucket, what was left of its
quota and its credits, and its concurrent requests. An organization that was not copied is refused.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, select

from sidecar.admission.beats import read_left
from sidecar.admission.entries import Entry, Outcome, ReservationRequest
from sidecar.admission.ledger import Ledger
from sidecar.admission.mirror import Mirror, read_mirror
from sidecar.admission.moves import Adopt, Forget, Moved, read_settled
from sidecar.config.store import StoreConfig
from sidecar.store import Store, StoreUnavailable
from sidecar.store.tables import organizations, reservations

FILE = "spool.db"

_MOST_MOVED = 256
_KNOWN_SECONDS = 600.0
_COPY_SECONDS = 30.0
_MOST_KNOWN = 10_000
_UNKNOWN = "its organization is not known to the spool"


def spool_url(directory: Path) -> str:
    """The store that a spool is, in the node's own ``directory``."""
    return f"sqlite:///{directory / FILE}"


def has_spool(config: StoreConfig) -> bool:
    """Whether there is a spool: one that is not used any more may hold what has still to be moved."""
    return config.when_down == "spool" or (config.state / FILE).exists()


class Spool:
    """The spool of a node, which its workers share."""

    def __init__(
        self,
        directory: Path,
        here: Ledger,
        store: Store,
        there: Ledger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The file must have been made, as any store is. What is moved goes to ``store``.

        The two ledgers, of the spool and of the store, must not be one: each remembers the terms of its own tables.
        """
        self._here = Store(spool_url(directory))
        self._store = store
        self._books = _Known(here)
        self._lock = directory / f"{FILE}.lock"
        self._clock = clock
        self._seen: dict[str, float] = {}
        self._copy_at = 0.0
        self._mirror, self._adopt, self._forget = Mirror(), Adopt(there), Forget()

    def note_organization(self, name: str) -> None:
        """The store has just judged a request of the organization ``name``."""
        if name not in self._seen:
            self._copy_at = 0.0
        self._seen[name] = self._clock()

    async def run(self, entry: Entry) -> Outcome:
        """Book ``entry`` here.

        Raises:
            StoreUnavailable: it cannot be written, or is of an organization that is not known here.
        """
        return await self._here.run(self._books, entry)

    async def settle_left(self, worker: str, outcome: str) -> None:
        """Settle what ``worker``, which is dead, has left open here and not in its slots."""
        for settlement in await self._here.read(lambda connection: read_left(connection, worker, outcome)):
            await self.run(settlement)

    async def copy_terms(self) -> None:
        """Copy from the store what limits are judged by, if it is time, unless something here waits to be moved.

        Raises:
            StoreUnavailable: one of the two does not answer.
        """
        names = self._known_organizations()
        if not names or self._clock() < self._copy_at:
            return
        if await self._here.read(_is_empty):
            copied = await self._store.read(lambda connection: read_mirror(connection, names))
            self._copy_at = self._clock() + _COPY_SECONDS
            await self._here.run(self._mirror, copied)

    async def move(self) -> int:
        """Move what is settled to the store; how many reservations that were. One worker of a node does it at a time.

        Raises:
            StoreUnavailable: one of the two does not answer.
        """
        moved = 0
        with _locked(self._lock) as mine:
            while mine and (settled := await self._here.read(lambda connection: read_settled(connection, _MOST_MOVED))):
                moved += await self._move(settled)
        return moved

    async def close(self) -> None:
        """Do what waits, and end."""
        await self._here.close()

    async def _move(self, settled: Sequence[Moved]) -> int:
        moving = (self._store.run(self._adopt, one) for one in settled)
        results = await asyncio.gather(*moving, return_exceptions=True)
        there = [one for one, result in zip(settled, results, strict=True) if not isinstance(result, BaseException)]
        await asyncio.gather(*(self._here.run(self._forget, one.settlement.id) for one in there))
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return len(there)

    def _known_organizations(self) -> Sequence[str]:
        """Those of the last ten minutes, and of them the latest."""
        oldest = self._clock() - _KNOWN_SECONDS
        recent = sorted(((at, name) for name, at in self._seen.items() if at >= oldest), reverse=True)[:_MOST_KNOWN]
        self._seen = {name: at for at, name in recent}
        return sorted(self._seen)


class _Known:
    """The operation of a ledger that knows no organization but those that were copied."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def perform(self, connection: Connection, items: Sequence[Entry]) -> Sequence[Outcome | Exception]:
        asked = {item.organization_id for item in items if isinstance(item, ReservationRequest)}
        known = set(connection.scalars(select(organizations.c.id).where(organizations.c.id.in_(asked))))
        unknown = asked - known
        fit = [item for item in items if not (isinstance(item, ReservationRequest) and item.organization_id in unknown)]
        outcomes = dict(zip((id(item) for item in fit), self._ledger.perform(connection, fit), strict=True))
        return [outcomes[id(item)] if id(item) in outcomes else StoreUnavailable(_UNKNOWN) for item in items]


def _is_empty(connection: Connection) -> bool:
    return connection.execute(select(reservations.c.id).limit(1)).first() is None


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether this process is the one; it ends with the process."""
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        yield _try_lock(file)
    finally:
        os.close(file)


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
