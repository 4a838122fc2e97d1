"""Refused requests as the logs of projects have them: each is written down when it is known that it stays refused.

They are noted after their clients have been answered, and with whatever else the store is about to write. Who sends
more than it may fills the store no faster for it: of each organization a worker notes so many in a minute, and no more.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Connection

from sidecar.admission import statements
from sidecar.admission.entries import ReservationRequest
from sidecar.admission.reservation import new_row
from sidecar.store import Store, StoreUnavailable, now_us

MOST_A_MINUTE = 120
"""How many refusals of one organization a worker notes in a minute."""

_PATIENCE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Refusal:
    """``request`` was refused with ``code``."""

    request: ReservationRequest
    code: str


class NoteRefusals:
    """The operation of :class:`~sidecar.store.Store` that writes refusals down. The second time is without effect."""

    def perform(self, connection: Connection, items: Sequence[Refusal]) -> Sequence[None]:
        """Write all down, as reservations that took nothing and ended when they began."""
        now = now_us(connection)
        statements.ADD_REFUSALS.run(connection, [_row(item, now) for item in items])
        return [None for _ in items]


class RefusedLog:
    """Notes refusals for one worker."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` is monotonic, in seconds."""
        self._store = store
        self._clock = clock
        self._operation = NoteRefusals()
        self._minute = 0
        self._noted = Counter[str]()

    async def note(self, refusal: Refusal) -> None:
        """Write ``refusal`` down, unless there are too many, or the store does not answer: nobody depends on it."""
        minute = int(self._clock() // 60)
        if minute != self._minute:
            self._minute, self._noted = minute, Counter()
        organization = refusal.request.organization_id
        if self._noted[organization] >= MOST_A_MINUTE:
            return
        self._noted[organization] += 1
        with suppress(StoreUnavailable):
            await self._store.run(self._operation, refusal, _PATIENCE_SECONDS)


def _row(refusal: Refusal, now: int) -> dict[str, object]:
    row = new_row(refusal.request, (), image_bytes=0, hold=0, now=now)
    return {**row, "settled_at": now, "refusal": refusal.code}
