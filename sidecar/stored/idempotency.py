"""Idempotency keys as a worker uses them: a request claims one, and lets it go or has its answer kept.

Nothing of a request or an answer, and no data key, is kept here between two calls.
"""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial

from sqlalchemy import Connection

from sidecar.store import Store
from sidecar.stored.answers import Answer
from sidecar.stored.claim_rows import KeepAnswers, LetGo, LetKeysGo, SealedAnswer, TakeKeys, is_running, sealed_answer
from sidecar.stored.claims import Claim, Held, Refused, Use
from sidecar.stored.keys import AddKey, NewKey, Random, key_of
from sidecar.stored.master_keys import MasterKeys
from sidecar.stored.seals import NONCE_BYTES, Place
from sidecar.stored.zero_retention import forbidden

WAIT_SECONDS = 10.0
"""For how long a request waits for another one with its key."""

_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 0.5


class StillRunning(Exception):
    """A request with this key is being answered."""


class Mismatch(Exception):
    """The key stands for another request."""


class NotKept(Exception):
    """The request has been answered, and what the answer was is not kept."""


class NotToBeKept(NotKept):
    """It is not because zero data retention is required."""


class IdempotencyKeys:
    """The idempotency keys of one store, for the process ``worker`` of ``node``.

    All methods raise :class:`StoreUnavailable` where the store does not answer, and :class:`KeyUnknown` where no master
    key opens the team's data key.
    """

    def __init__(self, store: Store, masters: MasterKeys, worker: str, node: str, random: Random = os.urandom) -> None:
        self._store = store
        self._masters = masters
        self._random = random
        # One object for each kind of work, as the store wants it.
        self._take, self._let_go, self._keep = TakeKeys(worker, node), LetKeysGo(), KeepAnswers()
        self._add_key = AddKey()

    async def claim(self, use: Use) -> tuple[Claim, Held] | Answer:
        """The key is held from now on; or the answer that it stands for. Another request that holds it is waited for.

        Who is cancelled may hold it.

        Raises:
            StillRunning: it was still held after :data:`WAIT_SECONDS`.
            Mismatch: it stands for another request.
            NotKept: it stands for an answer that is not kept.
            SealBroken: the answer cannot be read.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            claim = await self._claim_of(use)
            outcome = await self._store.run(self._take, claim)
            if isinstance(outcome, Held):
                return claim, outcome
            if outcome is Refused.MISMATCH:
                raise Mismatch
            if outcome is Refused.ANSWERED:
                return await self._answer(claim)
            if outcome is Refused.RUNNING:
                await self._wait(claim, deadline)

    async def let_go(self, claim: Claim, *, given_back: bool) -> None:
        """The request will have no answer that is kept; ``given_back`` is whether its cost is, by one that has."""
        await self._store.run(self._let_go, LetGo(claim.id, claim.attempt, given_back))

    async def give_up(self, use: Use) -> None:
        """Nobody waits for a claim of ``use`` any more, which may have been made."""
        claim = await self._claim_of(use)
        await self.let_go(claim, given_back=False)

    async def keep(self, claim: Claim, answer: Answer | None) -> None:
        """The request has been answered; ``None`` where that answer is not to be kept."""
        text = await asyncio.to_thread(answer.pack) if answer is not None else None
        await self._store.run(self._keep, await self._store.read(partial(self._sealed, claim=claim, text=text)))

    async def _claim_of(self, use: Use) -> Claim:
        while True:
            claim = await self._store.read(partial(self._digested, use=use))
            if claim is not None:
                return claim
            unix_ms = time.time_ns() // 1_000_000
            await self._store.run(
                self._add_key, NewKey.make(self._masters, use.owner.organization, self._random, unix_ms)
            )

    async def _wait(self, claim: Claim, deadline: float) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while await self._store.read(partial(is_running, claim=claim)):
            if time.monotonic() >= deadline:
                raise StillRunning
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    async def _answer(self, claim: Claim) -> Answer:
        text = await self._store.read(partial(self._opened, claim=claim))
        return await asyncio.to_thread(Answer.unpack, text)

    def _digested(self, connection: Connection, use: Use) -> Claim | None:
        key = key_of(connection, self._masters, use.owner.organization)
        if key is None:
            return None
        owner = use.owner
        endpoint = use.path.partition("?")[0]
        names = (owner.organization, owner.project, owner.environment, use.credential, endpoint, use.key)
        id_ = key.digest(b"key", *(name.encode() for name in names))
        asked = key.digest(b"request", id_.encode(), use.method.encode(), use.path.encode(), use.body)
        return Claim(id_, owner, key.id, asked, use.attempt)

    def _sealed(self, connection: Connection, claim: Claim, text: bytes | None) -> SealedAnswer:
        key = key_of(connection, self._masters, claim.owner.organization)
        sealed = None
        if text is not None and key is not None and key.id == claim.key_id:
            sealed = key.seal(text, _place(claim), "answer", self._random(NONCE_BYTES))
        return SealedAnswer(claim.id, claim.owner, claim.attempt, claim.key_id, sealed)

    def _opened(self, connection: Connection, claim: Claim) -> bytes:
        """The answer that the key stands for.

        Raises:
            NotKept: it is not kept.
        """
        found = sealed_answer(connection, claim.id)
        key = key_of(connection, self._masters, claim.owner.organization)
        if found is None or key is None or key.id != found[0]:
            raise NotToBeKept if forbidden(connection, [claim.owner]) else NotKept
        return key.open(found[1], _place(claim), "answer")


def _place(claim: Claim) -> Place:
    return Place(claim.id, claim.owner, None)
