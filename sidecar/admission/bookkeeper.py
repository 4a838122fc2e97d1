"""Reserves and settles for one worker, so that whatever dies, each reservation is settled once.

A reservation has a slot in the checkpoint file before it is made, and keeps it until its settlement is committed. So a
worker that is killed leaves nothing that others do not know of; and whatever the store did with a request that it gave
no answer to, a settlement follows that ends it, or keeps it from being made later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sidecar.admission.checkpoint import Checkpoint
from sidecar.admission.entries import Admitted, Entry, Outcome, Refused, ReservationRequest, Settled, Settlement
from sidecar.admission.ledger import GivenUpError, Ledger
from sidecar.admission.slots import Slot
from sidecar.admission.spool import Spool
from sidecar.store import Store, StoreUnavailable

_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0
# So often a settlement is tried that fails by a fault of ours: it may be that of a moment. If not, trying on would only
# burden the transactions of others.
_MOST_FAULTS = 5
# Who asks in the meantime takes settlements along, so that most of them need no transaction of their own.
_PATIENCE_SECONDS = 0.02

GIVEN_BACK = "given_back"
"""The outcome of an attempt whose cost has been given back, since a later one with its idempotency key was answered."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reserved:
    """A reservation stands; ``slot`` is where its answer is counted."""

    slot: Slot
    admitted: Admitted


class Bookkeeper:
    """Without a ``spool`` nothing is admitted while the store does not answer."""

    def __init__(self, store: Store, ledger: Ledger, checkpoint: Checkpoint, spool: Spool | None = None) -> None:
        self._store = store
        self._ledger = ledger
        self._checkpoint = checkpoint
        self._spool = spool
        self._giving_up: set[asyncio.Task[Settled | None]] = set()
        self._stopping = asyncio.Event()

    @property
    def open(self) -> int:
        """How many reservations of this worker are not settled."""
        return self._checkpoint.open

    async def reserve(self, request: ReservationRequest) -> Reserved | Refused:
        """Reserve; what is admitted is durable when this returns, and must be settled.

        Raises:
            StoreUnavailable: neither the store nor a spool answers.
            CheckpointFull: there is no slot for it.
        """
        slot = self._checkpoint.take(request.id, request.input_tokens)
        try:
            outcome, unsure = await self._reserve(slot, request)
        except GivenUpError as error:
            self._checkpoint.free(slot)
            raise StoreUnavailable(str(error)) from None
        except BaseException as error:
            # The client has left, or the store did not answer: it may have been made, or be made yet.
            gone = isinstance(error, asyncio.CancelledError)
            told = "client_gone" if gone else "store_unavailable"
            self._give_up(slot, Settlement(request.id, told, begun=False, image_bytes=0))
            raise
        if isinstance(outcome, Admitted):
            return Reserved(slot, outcome)
        assert isinstance(outcome, Refused), outcome
        if unsure:
            # The store may have made it all the same.
            self._give_up(slot, Settlement(request.id, outcome.code, begun=False))
        else:
            self._checkpoint.free(slot)
        return outcome

    async def settle(self, slot: Slot, settlement: Settlement) -> Settled | None:
        """Settle what ``slot`` was reserved for, however long that takes.

        ``None`` where it was left in the checkpoint file: at a stop, when the store does not answer.

        Raises:
            Exception: a fault of our own that does not pass. The slot stays, for those who settle what this worker
                leaves when it ends.
        """
        slot.finish(settlement)
        pause, faults = _FIRST_PAUSE_SECONDS, 0
        while True:
            try:
                outcome = await self.book(slot, settlement)
            except StoreUnavailable:
                if self._stopping.is_set():
                    return None
            except Exception:
                faults += 1
                if faults == _MOST_FAULTS or self._stopping.is_set():
                    raise
            else:
                assert isinstance(outcome, Settled), outcome
                self._checkpoint.free(slot)
                return outcome
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    async def book(self, slot: Slot, entry: Entry) -> Outcome:
        """Book ``entry`` where the reservation of ``slot`` stands.

        Raises:
            StoreUnavailable: it does not answer there; whether it was booked is not known.
        """
        if slot.spooled and self._spool is not None:
            return await self._spool.run(entry)
        patience = 0.0 if isinstance(entry, ReservationRequest) else _PATIENCE_SECONDS
        return await self._store.run(self._ledger, entry, patience)

    async def give_back(self, ids: Sequence[str]) -> None:
        """Bill nothing for the reservations ``ids``, whoever settles them or has settled them.

        Raises:
            StoreUnavailable: the store does not answer; whether it was booked is not known.
        """
        for id_ in ids:
            await self._store.run(self._ledger, Settlement(id_, GIVEN_BACK, begun=False), _PATIENCE_SECONDS)

    def stop(self) -> None:
        """From now on a settlement is tried once; what the store does not take is left to others."""
        self._stopping.set()

    async def close(self) -> None:
        """Wait for the settlements of what was given up; then leave the checkpoint file."""
        self.stop()
        while self._giving_up:
            await asyncio.wait(self._giving_up)
        left = len(self._checkpoint.used)
        if left:
            _log.warning("%d reservations are left in %s to be settled later", left, self._checkpoint.path)
        self._checkpoint.close()

    async def _reserve(self, slot: Slot, request: ReservationRequest) -> tuple[Outcome, bool]:
        """What comes of ``request``, and whether the store may have made it without giving an answer."""
        if self._spool is None:
            return await self.book(slot, request), False
        unsure = self._store.healthy
        if self._store.healthy:
            with suppress(StoreUnavailable):
                outcome = await self.book(slot, request)
                self._spool.note_organization(request.organization_id)
                return outcome, False
        slot.note_spooled()
        return await self.book(slot, request), unsure

    def _give_up(self, slot: Slot, settlement: Settlement) -> None:
        task = asyncio.create_task(self.settle(slot, settlement))
        self._giving_up.add(task)
        task.add_done_callback(self._given_up)

    def _given_up(self, task: asyncio.Task[Settled | None]) -> None:
        self._giving_up.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a reservation that was given up could not be settled", exc_info=error)
