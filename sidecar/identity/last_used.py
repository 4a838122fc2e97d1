"""When credentials were last used: noted in memory, written now and then, and coarsely."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, or_, update

from sidecar.identity.records import MICROSECONDS
from sidecar.store import Store, StoreUnavailable, now_us
from sidecar.store.tables import credentials

_EVERY_SECONDS = 10.0
# One that is used all the time, on any number of nodes, is written once in so long.
_COARSE_SECONDS = 60
_MOST = 10_000


class Touch:
    """Note that credentials were used, by their ids."""

    def perform(self, connection: Connection, items: Sequence[frozenset[str]]) -> Sequence[None]:
        """Write the time into those that have none, or one that is old."""
        now = now_us(connection)
        # In the order of their ids: two nodes that wrote the same ones in other orders would wait for each other.
        used = [{"used": id_} for id_ in sorted(frozenset[str]().union(*items))]
        old = or_(
            credentials.c.last_used_at.is_(None), credentials.c.last_used_at < now - _COARSE_SECONDS * MICROSECONDS
        )
        statement = update(credentials).where(credentials.c.id == bindparam("used"), old).values(last_used_at=now)
        if used:
            connection.execute(statement, used)
        return [None] * len(items)


class LastUsed:
    """The credentials that this worker has let through since it last wrote; ``pending`` are their ids."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._touch = Touch()
        self.pending: set[str] = set()

    def note(self, id_: str) -> None:
        """A request has come with this credential. This is all that a request waits for."""
        if len(self.pending) < _MOST:
            self.pending.add(id_)

    async def write_forever(self) -> None:
        """Write what was noted every few seconds, until cancelled, and then once more."""
        try:
            while True:
                await asyncio.sleep(_EVERY_SECONDS)
                await self.write()
        finally:
            await self.write()

    async def write(self) -> None:
        """Write what was noted. While the store is down it is kept for the next time."""
        used, self.pending = frozenset(self.pending), set()
        if not used:
            return
        try:
            await self._store.run(self._touch, used)
        except StoreUnavailable:
            self.pending |= used
