"""Tells what directives hold for a request: asked of the store once in some seconds for each team.

What was read counts from when the reading began: so a change holds everywhere at the latest ``SECONDS`` after it was
committed, or when the reading that was under way has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from sidecar.admission.directive_rows import read_directives
from sidecar.admission.directives import Directives, applied
from sidecar.exchange.direct import Direct
from sidecar.extproc.driver import Done
from sidecar.responses.errors import ApiError
from sidecar.responses.level import Level
from sidecar.store import Store, StoreUnavailable
from sidecar.stored.zero_retention import levels_of

SECONDS = 3.0
STALE_SECONDS = 600.0
"""For how long what was read counts while the store is down, where that is wanted."""

_MOST_KNOWN = 10_000

_Levels = Sequence[tuple[Level, Directives]]


@dataclass(frozen=True, slots=True)
class _Read:
    """What a team has set, where it requires zero data retention, and when the reading began (monotonic clock)."""

    levels: _Levels
    retains_nothing: Sequence[Level]
    at: float


class Directing:
    """Performs the ask for one worker. ``configured`` are those of the configuration."""

    def __init__(
        self,
        store: Store,
        configured: _Levels,
        *,
        stale: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """With ``stale``, what was known counts for longer while the store is down."""
        self._store = store
        self._configured = configured
        self._stale = stale
        self._clock = clock
        self._known: dict[str, _Read] = {}
        self._reading: dict[str, asyncio.Task[_Read]] = {}

    def direct(self, ask: Direct) -> Done[Directives] | asyncio.Future[Directives]:
        """What holds: at once where that is known."""
        known = self._known.get(ask.caller.organization)
        if known is not None and self._clock() - known.at < SECONDS:
            return Done(self._applied(known, ask))
        return asyncio.ensure_future(self._read(ask))

    async def _read(self, ask: Direct) -> Directives:
        organization = ask.caller.organization
        task = self._reading.get(organization)
        if task is None:
            task = self._reading[organization] = asyncio.create_task(self._ask_the_store(organization))
            task.add_done_callback(lambda task: self._have_read(organization, task))
        try:
            # Others may wait for the same.
            return self._applied(await asyncio.shield(task), ask)
        except StoreUnavailable:
            known = self._known.get(organization)
            if self._stale and known is not None and self._clock() - known.at < STALE_SECONDS:
                return self._applied(known, ask)
            raise ApiError("node_unavailable", "The node cannot read directives now; try again.") from None

    async def _ask_the_store(self, organization: str) -> _Read:
        at = self._clock()

        def read(connection: Connection) -> _Read:
            teams = {organization}
            return _Read(read_directives(connection, teams), levels_of(connection, teams), at)

        return await self._store.read(read)

    def _have_read(self, organization: str, task: asyncio.Task[_Read]) -> None:
        del self._reading[organization]
        if task.cancelled() or task.exception() is not None:
            return
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[organization] = task.result()

    def _applied(self, read: _Read, ask: Direct) -> Directives:
        # Of the same level, what a command has set comes first.
        directives = applied([*read.levels, *self._configured], ask.caller)
        retains_nothing = any(level.covers(ask.caller) for level in read.retains_nothing)
        return replace(directives, retains_nothing=True) if retains_nothing else directives
