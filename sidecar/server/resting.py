"""Routes to native upstreams that rest: a circuit for each model and upstream, by how requests end.

Nobody is sent a canary there, which the operator would pay for. A route rests when a request has waited in vain for as
long as it may while nothing was heard of the route, or when several in a row could not be served. Meanwhile requests
take the model's other routes, or are refused at once where there is none. When the rest is over one request tries it
for all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sidecar.backends.native import failures
from sidecar.exchange.commands import TRITON, CallUpstream, Command
from sidecar.exchange.events import Event
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.report import Report
from sidecar.extproc.sessions import Sessions

_LOOK_SECONDS = 0.5
_SHORTEST_SECONDS = 5.0
_LONGEST_SECONDS = 60.0
_FAILURES = 5
"""So many in a row, each of another request."""

_NOT_SERVED = frozenset(
    failure.name for failure in (failures.UNREACHABLE, failures.NOT_ITS_PROTOCOL, failures.ENDED_EARLY, failures.BROKEN)
)

_log = logging.getLogger(__name__)

Key = tuple[str, str]
"""A model's name, and an upstream's."""


@dataclass(slots=True)
class _Way:
    """``rests_until`` is 0 while it is in use; ``trial`` is the request that tries it when its rest is over."""

    heard_at: float = 0.0
    failures: int = 0
    pause: float = 0.0
    rests_until: float = 0.0
    trial: Exchange | None = None


class Resting:
    """Keeps it in the catalog which routes rest. As an observer it sees how requests are called and end."""

    def __init__(self, sessions: Sessions | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.sessions = sessions
        """Whose catalog it is; there have to be some when the first request comes."""
        self._monotonic = monotonic
        self._ways: dict[Key, _Way] = {}

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """Note which request tries a route, and how requests have ended."""
        if any(type(command) is CallUpstream and command.host != TRITON for command in commands):
            self._called(exchange)
        if exchange.done:
            self._over(exchange)

    async def keep(self) -> None:
        """Let one request try each route whose rest is over, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Do it once."""
        assert self.sessions is not None
        for exchange in self.sessions.exchanges() if self._ways else ():
            if (way := self._way_of(exchange.report)) is not None:
                way.heard_at = max(way.heard_at, exchange.heard_at)
        now = self._monotonic()
        for key, way in self._ways.items():
            if way.rests_until and way.trial is None and now >= way.rests_until:
                self._mark(key, rests=False)

    def _way_of(self, report: Report) -> _Way | None:
        if report.model is None or not report.attempts:
            return None
        return self._ways.get((report.model, report.attempts[-1].route))

    def _called(self, exchange: Exchange) -> None:
        report = exchange.report
        assert report.model is not None
        key = report.model, report.attempts[-1].route
        way = self._ways.setdefault(key, _Way())
        if way.rests_until and way.trial is None:
            way.trial = exchange
            self._mark(key, rests=True)

    def _over(self, exchange: Exchange) -> None:
        report = exchange.report
        if report.model is None:
            return
        for attempt in report.attempts:
            key = report.model, attempt.route
            if (way := self._ways.get(key)) is None:
                continue
            is_last = attempt is report.attempts[-1]
            served = self._served(way, report) if is_last else attempt.outcome != failures.UNREACHABLE.code
            if served:
                self._serves(key, way)
            elif served is False:
                self._fails(key, way, tried=way.trial is exchange)
            elif way.trial is exchange:
                # Its client has left; the next one tries.
                way.trial = None

    def _served(self, way: _Way, report: Report) -> bool | None:
        """Whether a request's last route has served it; ``None`` where that is not known."""
        timing, error = report.timing, report.backend_error
        if timing.first_token_at is not None:
            way.heard_at = max(way.heard_at, timing.model_done_at or timing.first_token_at)
            return True
        if error is None:
            return None if report.outcome == "client_gone" else True
        if error.failure != failures.TIMEOUT.name:
            return error.failure not in _NOT_SERVED
        if way.heard_at >= timing.called_at:
            return None
        way.failures = _FAILURES
        return False

    def _serves(self, key: Key, way: _Way) -> None:
        if way.rests_until:
            way.rests_until, way.pause, way.trial = 0.0, 0.0, None
            self._mark(key, rests=False)
            _log.info("model %s: the route to %s serves again", *key)
        way.failures = 0

    def _fails(self, key: Key, way: _Way, *, tried: bool) -> None:
        way.failures += 1
        if tried or (way.failures >= _FAILURES and not way.rests_until):
            way.pause = min(max(_SHORTEST_SECONDS, 2 * way.pause), _LONGEST_SECONDS)
            way.rests_until, way.trial = self._monotonic() + way.pause, None
            self._mark(key, rests=True)
            _log.warning("model %s: the route to %s rests for %g s", *key, way.pause)

    def _mark(self, key: Key, *, rests: bool) -> None:
        assert self.sessions is not None
        self.sessions.catalog = self.sessions.catalog.with_rest(*key, rests=rests)
