"""Admission as exchanges use it: who may begin now, who waits a little, and what the others are told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from sidecar.admission.bookkeeper import Bookkeeper, Reserved
from sidecar.admission.checkpoint import CheckpointFull
from sidecar.admission.entries import ImagesFetched, Refused, ReservationRequest, Settlement
from sidecar.admission.refusals import whole_seconds
from sidecar.admission.slots import Slot
from sidecar.admission.waiting_room import WaitingRoom
from sidecar.responses.errors import ApiError
from sidecar.store import StoreUnavailable


class Admission:
    """``books`` keeps the accounts; who is refused for a short time waits in ``room``."""

    def __init__(self, books: Bookkeeper, room: WaitingRoom[Reserved]) -> None:
        self._books = books
        self._room = room
        self._giving_back: set[asyncio.Task[None]] = set()

    @property
    def open(self) -> int:
        """How many reservations of this worker are not settled."""
        return self._books.open

    @property
    def waiting(self) -> int:
        """How many requests wait for what their limits give back."""
        return self._room.waiting

    async def reserve(self, request: ReservationRequest) -> Reserved:
        """Reserve for ``request``; what is reserved must be settled. Of who is cancelled no reservation stays.

        Raises:
            ApiError: it is refused, or cannot be accounted for.
        """
        try:
            outcome = await self._room.admit(request.line, lambda: self._books.reserve(request))
        except StoreUnavailable:
            raise ApiError("node_unavailable", "The node cannot account for requests now; try again.") from None
        except CheckpointFull:
            raise ApiError("capacity_unavailable", "The node has too many requests under way.") from None
        if isinstance(outcome, Refused):
            raise _error_of(outcome)
        return outcome

    def images_fetched(self, slot: Slot, id: str, used: int) -> None:
        """Give back what the reservation ``id`` holds for images beyond ``used`` bytes; nobody need wait for it."""
        task = asyncio.create_task(self._give_back(slot, ImagesFetched(id, used)))
        self._giving_back.add(task)
        task.add_done_callback(self._giving_back.discard)

    async def settle(self, slot: Slot, settlement: Settlement, organization: str) -> None:
        """Settle what ``slot`` was reserved for, on behalf of ``organization``."""
        await self._books.settle(slot, settlement)
        self._room.nudge(organization)

    async def give_back(self, ids: Sequence[str]) -> None:
        """Bill nothing for these reservations, which are over; raises :class:`StoreUnavailable`."""
        await self._books.give_back(ids)

    def stop(self) -> None:
        """The worker stops: what the store does not take now is left to others."""
        self._books.stop()

    async def _give_back(self, slot: Slot, fetched: ImagesFetched) -> None:
        # Where the store fails, the settlement gives it back.
        with suppress(StoreUnavailable):
            await self._books.book(slot, fetched)


def _error_of(refused: Refused) -> ApiError:
    wait = refused.retry_after_us
    return ApiError(
        refused.code,
        refused.message,
        retry_after=None if wait is None else whole_seconds(wait),
        retry=wait is not None,
        headers=refused.standing.headers(),
    )
