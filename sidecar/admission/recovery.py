"""Settles what the dead have left: workers of this node within a second or two, other machines after a minute.

All workers do this, on all nodes, and need not agree: of two that settle the same reservation one does it, and a file
has one finder at a time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from sidecar.admission.beats import AdoptWorkers, Beat, Beats, ForgetWorkers, Watch, read_beats, read_left
from sidecar.admission.checkpoint import Checkpoint, DeadCheckpoint, claim_dead
from sidecar.admission.entries import Entry, Settlement
from sidecar.admission.ledger import Ledger
from sidecar.admission.lessee import Lessee, ReturnLeases
from sidecar.admission.spool import Spool
from sidecar.responses.marks import Counts
from sidecar.store import Store, StoreUnavailable

WORKER_LOST = "worker_lost"
"""The outcome of a request whose worker has died."""
NODE_LOST = "node_lost"
"""The outcome of a request whose worker has not been heard of."""
LOOK_SECONDS = 1.0
"""How often dead workers of this node are looked for, and what is spooled is moved."""
BEAT_SECONDS = 5.0
"""How often a worker tells the store that it lives, and looks whether others do."""
# The store looks through all open reservations for it, and hardly anybody dies so early.
_ADOPT_SECONDS = 600.0
_LONGEST_PAUSE_SECONDS = 3 * BEAT_SECONDS
_MOST_AT_ONCE = 256

_log = logging.getLogger(__name__)


class Recovery:
    """What one worker does for the others, in the background."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        checkpoint: Checkpoint,
        node: str,
        spool: Spool | None = None,
        clock: Callable[[], float] = time.monotonic,
        lessee: Lessee | None = None,
    ) -> None:
        """``clock`` is monotonic, in seconds; ``lessee`` is the ledger's."""
        self._store = store
        self._ledger = ledger
        self._checkpoint = checkpoint
        self._node = node
        self._spool = spool
        self._clock = clock
        self._lessee, self._return = lessee, ReturnLeases()
        self._beats, self._forget, self._adopt = Beats(), ForgetWorkers(), AdoptWorkers()
        self._adopt_at = clock()
        self._watch = Watch(_LONGEST_PAUSE_SECONDS)
        self._told: dict[str, int] = {}
        self._stuck: set[str] = set()

    async def run_forever(self) -> None:
        """Do it all, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(_repeat(self.settle_dead, LOOK_SECONDS))
            group.create_task(_repeat(self.beat, BEAT_SECONDS))
            group.create_task(_repeat(self.settle_lost, BEAT_SECONDS))
            if self._lessee is not None:
                group.create_task(_repeat(self.return_leases, LOOK_SECONDS))
            if self._spool is not None:
                group.create_task(_repeat(self._spool.move, LOOK_SECONDS))
                group.create_task(_repeat(self._spool.copy_terms, LOOK_SECONDS))

    async def settle_dead(self) -> None:
        """Settle what dead workers of this node have left, and remove their files.

        Raises:
            StoreUnavailable: the store does not answer; what is not settled stays in the files.
        """
        for dead in claim_dead(self._checkpoint.path.parent):
            try:
                settled = await self._settle_file(dead)
            except BaseException:
                dead.release()
                raise
            if settled:
                dead.remove()
            else:
                dead.release()

    async def beat(self) -> None:
        """Tell the store that this worker lives, and how far its answers have come.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        marks = {slot.id: slot.mark[0] for slot in self._checkpoint.used}
        changed = {id: mark for id, mark in marks.items() if mark and self._told.get(id) != mark}
        delivered = {id: Counts.of(mark)[1:] for id, mark in changed.items()}
        await self._store.run(self._beats, Beat(self._checkpoint.incarnation, self._node, delivered))
        self._told = marks

    async def leave(self) -> None:
        """Tell the store that this worker has ended well, unless it leaves something behind."""
        with suppress(StoreUnavailable):
            if not self._checkpoint.used:
                await self._store.run(self._forget, self._checkpoint.incarnation)

    async def settle_lost(self) -> None:
        """Settle what workers have left that have not been heard of for a minute, with the counts of their last beat.

        Raises:
            StoreUnavailable: the store does not answer; from then on the minute begins anew.
        """
        try:
            if self._clock() >= self._adopt_at:
                await self._store.run(self._adopt, None)
                self._adopt_at = self._clock() + _ADOPT_SECONDS
            beats = await self._store.read(read_beats)
        except StoreUnavailable:
            self._watch.interrupted()
            raise
        for worker in self._watch.look(beats, self._clock()):
            _log.warning("the worker %s has not been heard of for a minute: what it has left is settled", worker)
            await self._settle_rows(worker, NODE_LOST)

    async def return_leases(self) -> None:
        """Give back what is left in this worker's leases that have run out.

        Raises:
            StoreUnavailable: the store does not answer; they are there to be given back later.
        """
        if self._lessee is not None and await self._store.read(self._lessee.has_ending):
            await self._store.run(self._return, self._lessee)

    async def _settle_file(self, dead: DeadCheckpoint) -> bool:
        """Whether all that the file's worker has left could be settled."""
        if dead.left:
            _log.warning(
                "the worker %s has left %d reservations, which are settled now", dead.incarnation, len(dead.left)
            )
        spooled = [left.settlement(WORKER_LOST) for left in dead.left if left.spooled and self._spool is not None]
        stored = [left.settlement(WORKER_LOST) for left in dead.left if not left.spooled or self._spool is None]
        settled = True
        if self._spool is not None:
            # Before the store is asked, which may not answer.
            settled = await self._settle(self._spool.run, spooled, dead.incarnation)
            await self._spool.settle_left(dead.incarnation, WORKER_LOST)
        settled &= await self._settle(self._book, stored, dead.incarnation)
        return await self._settle_rows(dead.incarnation, WORKER_LOST) and settled

    async def _settle_rows(self, worker: str, outcome: str) -> bool:
        """The same for the store's rows of a worker, after which it is forgotten."""
        left = await self._store.read(lambda connection: read_left(connection, worker, outcome))
        settled = await self._settle(self._book, left, worker)
        if settled:
            await self._store.run(self._forget, worker)
        return settled

    async def _book(self, entry: Entry) -> object:
        return await self._store.run(self._ledger, entry)

    async def _settle(
        self, book: Callable[[Settlement], Awaitable[object]], settlements: Sequence[Settlement], worker: str
    ) -> bool:
        settled = True
        for start in range(0, len(settlements), _MOST_AT_ONCE):
            booking = [book(settlement) for settlement in settlements[start : start + _MOST_AT_ONCE]]
            for result in await asyncio.gather(*booking, return_exceptions=True):
                if isinstance(result, StoreUnavailable | asyncio.CancelledError):
                    raise result
                if isinstance(result, BaseException):
                    settled = False
                    self._tell_stuck(worker, result)
        return settled

    def _tell_stuck(self, worker: str, error: BaseException) -> None:
        """Log a fault of our own, once for each worker: it will come again with each look."""
        if worker not in self._stuck:
            self._stuck.add(worker)
            _log.error("what the worker %s has left cannot be settled", worker, exc_info=error)


async def _repeat(work: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Again and again, each time ``seconds`` after the last. That a store does not answer is logged there."""
    while True:
        try:
            await work()
        except StoreUnavailable:
            pass
        except Exception:
            _log.exception("%s failed", work.__qualname__)
        await asyncio.sleep(seconds)
