"""Performs the asks about idempotency keys, and says in the API's words what comes of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sidecar.admission.admission import Admission
from sidecar.exchange.claim import Claimed, ClaimKey, EndClaim
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.server.patience import Patience
from sidecar.store import StoreUnavailable
from sidecar.stored.answers import Answer
from sidecar.stored.claims import Use
from sidecar.stored.idempotency import IdempotencyKeys, Mismatch, NotKept, NotToBeKept, StillRunning
from sidecar.stored.master_keys import KeyUnknown
from sidecar.surfaces.idempotency import IDEMPOTENCY_HEADER, REPLAYED_HEADER

REPLAYED = "replayed"
"""The outcome of a request whose answer was given before."""

_log = logging.getLogger(__name__)


class Idempotency:
    """The performers over one store's keys; what attempts have cost that were not answered is given back by
    ``admission``."""

    def __init__(self, keys: IdempotencyKeys, admission: Admission, patience: Patience) -> None:
        self._keys = keys
        self._admission = admission
        self._patience = patience
        self._given_up: set[asyncio.Task[None]] = set()

    async def claim(self, ask: ClaimKey) -> Claimed | Reply:
        """The key is held, or stands for this reply."""
        try:
            with _in_words():
                found = await self._keys.claim(ask.use)
        except BaseException as error:
            # The client has left, or the store did not answer: the key may be held, or be held yet.
            if isinstance(error, asyncio.CancelledError) or getattr(error, "code", None) == "node_unavailable":
                self._give_up(ask.use)
            raise
        if isinstance(found, Answer):
            return Reply(found.status, {**found.headers, REPLAYED_HEADER: "true"}, found.body, REPLAYED)
        claim, held = found
        return Claimed(claim, held.earlier)

    async def end(self, ask: EndClaim) -> None:
        """Keep the answer, or let go of the key, as soon as the store answers."""
        claimed = ask.claimed
        claim = claimed.claim

        async def end() -> None:
            if not ask.answered:
                await self._keys.let_go(claim, given_back=ask.given_back)
                return
            # Before it: whatever dies in between, no second attempt is billed beside it.
            await self._admission.give_back(claimed.earlier)
            await self._keys.keep(claim, ask.answer)

        await self._patience.carry_through(end, f"the answer of {claim.attempt}")

    def _give_up(self, use: Use) -> None:
        async def let_go() -> None:
            await self._keys.give_up(use)

        task = asyncio.create_task(self._patience.carry_through(let_go, f"that {use.attempt} has no answer"))
        self._given_up.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._given_up.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("an idempotency key could not be let go", exc_info=error)


@contextmanager
def _in_words() -> Iterator[None]:
    """Say what goes wrong as an :class:`ApiError`."""
    try:
        yield
    except StillRunning:
        message = f"A request with this {IDEMPOTENCY_HEADER} is still being answered; try again shortly."
        raise ApiError("idempotency_in_progress", message, IDEMPOTENCY_HEADER) from None
    except Mismatch:
        message = f"This {IDEMPOTENCY_HEADER} stands for another request; send another key."
        raise ApiError("idempotency_mismatch", message, IDEMPOTENCY_HEADER) from None
    except NotToBeKept:
        message = f"The request with this {IDEMPOTENCY_HEADER} was answered; zero data retention keeps no answers."
        raise ApiError("policy_denied", message, IDEMPOTENCY_HEADER) from None
    except NotKept:
        message = f"The request with this {IDEMPOTENCY_HEADER} was answered, and its answer is not kept."
        raise ApiError("idempotency_mismatch", message, IDEMPOTENCY_HEADER) from None
    except KeyUnknown as error:
        _log.error("idempotency keys cannot be used: %s", error)
        raise ApiError("node_unavailable", "Idempotency keys cannot be used here at the moment.") from None
    except StoreUnavailable:
        raise ApiError("node_unavailable", "The store of answers does not answer; try again.") from None
