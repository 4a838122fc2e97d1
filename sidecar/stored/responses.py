"""Stored responses as a worker uses them: each method is one or two pieces of work for the store.

Nothing of a conversation, and no data key, is kept here between two calls.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from sidecar.responses.page import Page
from sidecar.store import Store
from sidecar.stored.chain import Chain, NotStored, StillMade, TooLong, read_chain
from sidecar.stored.keep import Announce, Keep, Kept, Withdraw
from sidecar.stored.keys import AddKey, NewKey, Random, key_of, unopened
from sidecar.stored.listing import cut
from sidecar.stored.master_keys import MasterKeys
from sidecar.stored.owner import Owner
from sidecar.stored.record import NONCES_BYTES, Record, SealedRecord, whole_response
from sidecar.stored.removal import Removal, Remove
from sidecar.stored.seals import Place
from sidecar.stored.zero_retention import forbidden

WAIT_SECONDS = 10.0
"""For how long a turn, or a list of items, waits for a response to be stored."""
MOMENT_SECONDS = 0.25
"""The same of who only asks how it stands: the moment between the end of a stream and its storing."""

R = TypeVar("R")

_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 0.5
# To make a key is one, to use it another.
_MOST_ATTEMPTS = 8


class Forbidden(Exception):
    """Zero data retention is required for this owner."""


class StoredResponses:
    """The stored responses of one store. All methods raise :class:`StoreUnavailable` where it does not answer.

    Those that read raise :class:`SealBroken` and :class:`KeyUnknown` where something cannot be read.
    """

    def __init__(self, store: Store, masters: MasterKeys, random: Random = os.urandom) -> None:
        self._store = store
        self._masters = masters
        self._random = random
        # One object for each kind of work, as the store wants it.
        self._announce, self._keep, self._withdraw = Announce(), Keep(), Withdraw()
        self._add_key, self._remove = AddKey(), Remove()

    async def check_allowed(self, owner: Owner) -> None:
        """Go on only where something may be stored for ``owner``.

        Raises:
            Forbidden: it may not.
        """
        await self._store.read(partial(_check_allowed, owner=owner))

    async def unopened(self) -> Sequence[tuple[str, int]]:
        """See :func:`sidecar.stored.keys.unopened`."""
        return await self._store.read(partial(unopened, masters=self._masters))

    async def announce(self, place: Place) -> None:
        """A response is being made that will be stored here: until then it is known to be under way.

        Raises:
            Forbidden: it may not be stored.
        """
        if not await self._store.run(self._announce, place):
            raise Forbidden

    async def withdraw(self, response_id: str) -> None:
        """A response that was announced will not be stored."""
        await self._store.run(self._withdraw, response_id)

    async def keep(self, record: Record) -> bool:
        """Store a response as a whole, and keep the chain that it continued as long as itself; whether it is stored.

        It is not where it is too large, where zero data retention is required by now, and where its client has deleted
        it in the meantime.

        Raises:
            KeyUnknown: no master key opens the team's data key.
        """
        if record.too_large:
            return False
        organization = record.place.owner.organization
        for _ in range(_MOST_ATTEMPTS):
            sealed = await self._store.read(partial(self._sealed, record=record))
            if sealed is None:
                new = NewKey.make(self._masters, organization, self._random, time.time_ns() // 1_000_000)
                await self._store.run(self._add_key, new)
                continue
            outcome = await self._store.run(self._keep, sealed)
            # Another key: this one has been thrown away since it was read.
            if outcome is not Kept.KEY_GONE:
                return outcome is Kept.STORED
        return False

    async def conversation(self, owner: Owner, previous_id: str) -> list[bytes]:
        """The stored lists of items that a turn begins with which continues ``previous_id``, oldest first.

        One that is being made is waited for.

        Raises:
            Forbidden: nothing may be stored for ``owner``.
            NotStored: there is no such response, or one of its chain is gone.
            StillMade: it was still not stored after :data:`WAIT_SECONDS`.
            TooLong: the conversation is too large to be continued.
        """
        return await self._once_made(partial(self._conversation, owner=owner, id_=previous_id), WAIT_SECONDS)

    async def response(self, owner: Owner, id_: str) -> bytes:
        """The response object as JSON.

        Raises:
            NotStored: there is no such response.
            StillMade: it is being made, and was so for :data:`MOMENT_SECONDS`.
        """

        def read(chain: Chain) -> bytes:
            return whole_response(*chain.response())

        return await self._read_chain(owner, id_, read, MOMENT_SECONDS, most_responses=1)

    async def input_items(self, owner: Owner, id_: str, page: Page) -> bytes:
        """A page of the items that the response was made from, as JSON.

        Of a chain in which a response was deleted, those are left that came after it. One that is being made is waited
        for.

        Raises:
            NotStored: there is no such response.
            StillMade: it was still not stored after :data:`WAIT_SECONDS`.
            ApiError: ``invalid_request``, the page begins after an item that is not in the list.
        """

        def read(chain: Chain) -> bytes:
            # All but the last response's own output.
            return cut(page, chain.items()[:-1])

        return await self._read_chain(owner, id_, read, WAIT_SECONDS)

    async def remove(self, owner: Owner, id_: str) -> None:
        """Remove a response; those that continued it can be continued no more.

        Raises:
            NotStored: there is no such response.
        """
        if not await self._store.run(self._remove, Removal(id_, owner)):
            raise NotStored

    async def _read_chain(
        self, owner: Owner, id_: str, read: Callable[[Chain], bytes], seconds: float, most_responses: int | None = None
    ) -> bytes:
        def query(connection: Connection) -> bytes:
            return read(read_chain(connection, self._masters, owner, id_, most_responses))

        return await self._once_made(query, seconds)

    async def _once_made(self, query: Callable[[Connection], R], seconds: float) -> R:
        """What ``query`` finds once the response that it is about is no longer being made; it waits so long at most."""
        pause, deadline = _FIRST_PAUSE_SECONDS, time.monotonic() + seconds
        while True:
            try:
                return await self._store.read(query)
            except StillMade:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _sealed(self, connection: Connection, record: Record) -> SealedRecord | None:
        key = key_of(connection, self._masters, record.place.owner.organization)
        return None if key is None else record.seal(key, self._random(NONCES_BYTES))

    def _conversation(self, connection: Connection, owner: Owner, id_: str) -> list[bytes]:
        _check_allowed(connection, owner)
        chain = read_chain(connection, self._masters, owner, id_)
        if chain.too_long:
            raise TooLong
        if not chain.whole:
            raise NotStored
        return chain.items()


def _check_allowed(connection: Connection, owner: Owner) -> None:
    if forbidden(connection, [owner]):
        raise Forbidden
