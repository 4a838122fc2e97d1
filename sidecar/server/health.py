"""Whether the models of Triton answer: a circuit for each, which requests open and a canary closes.

A model is heard of with every token of any request. What makes one doubtful is a request that fails, or waits while
nothing is heard of the model at all, or that Triton does not answer for it. Then it is sent a canary
(:mod:`sidecar.exchange.canary`), by the way that requests take; and where that fails too, and still nothing is heard of
the model, requests for it are refused at once, until a canary is answered. A model that serves is sent none.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from math import inf

from sidecar.backends.failure import BackendError
from sidecar.backends.triton import errors
from sidecar.backends.triton.first_token import first_token
from sidecar.exchange.canary import canary_of
from sidecar.exchange.catalog import Catalog, ServedModel
from sidecar.exchange.commands import Command
from sidecar.exchange.events import Event
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.phases import Calling
from sidecar.exchange.report import TRITON
from sidecar.extproc.sessions import Sessions
from sidecar.responses.errors import ApiError
from sidecar.server.contracts import Contracts
from sidecar.server.signs import Sign, Signs

_LOOK_SECONDS = 0.5
_START_SECONDS = 0.05
# Between two canaries for a model that does not answer, and after one that was answered.
_PAUSE_SECONDS = 1.0
_WELL_SECONDS = 5.0
# Canaries must fail for so long: one of two Tritons may just have ended, and Envoy not know yet.
_CERTAIN_SECONDS = 1.0
# Of what a model's settings let a request wait for its first token: as long as nothing may be heard of a model for
# which a request waits, and as long as the canary may take that is sent then; a model that starts may take longer.
_SHARE = 0.25
_LEAST_SECONDS = 5.0

# What a request meets that is not as the model wants it, and what a model says that has much to do.
_WELL = frozenset({"prompt_too_long", "queue_full"})
# Failures that another contract may mend.
_OF_THE_CONTRACT = frozenset({"other_tensors", "not_loaded"})

_log = logging.getLogger(__name__)


class Health:
    """Keeps the outages in the catalog. As an observer it sees how requests end."""

    def __init__(
        self,
        signs: Signs,
        contracts: Contracts,
        way: Callable[[], Awaitable[str]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``way`` tells gRPC's name of whom canaries are sent to."""
        self._signs = signs
        self._contracts = contracts
        self._way = way
        self._monotonic = monotonic
        self._patience: dict[str, float] = {}
        self._doubted: dict[str, float] = {}
        # When the first was sent of the canaries that fail now.
        self._failing: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """Note how a request has ended."""
        report = exchange.report
        if not exchange.done or report.model not in self._patience or report.attempts[-1].route != TRITON:
            return
        timing, error = report.timing, report.backend_error
        if timing.first_token_at is not None:
            self._signs.heard(report.model, timing.model_done_at or timing.first_token_at)
        if error is None or error.failure in _WELL or timing.done_at is None:
            return
        waited = timing.done_at - timing.called_at
        if error.failure != "timeout" or timing.first_token_at is not None:
            self._doubted[report.model] = timing.done_at
        elif self._signs[report.model].heard_at >= timing.called_at:
            # It is at work; this one's turn did not come.
            return
        elif waited < self._patience[report.model]:
            self._doubted[report.model] = timing.called_at
        else:
            self._signs.failed(report.model, timing.called_at, error.failure, hangs=True)

    async def begin(self, sessions: Sessions) -> None:
        """Look until it is known of each model whose contract is known whether it answers."""
        self.look(sessions)
        while any(
            model.contract is not None and model.outage is errors.STARTING for model in sessions.catalog.triton_models()
        ):
            await asyncio.sleep(_START_SECONDS)
            self.look(sessions)

    async def keep(self, sessions: Sessions) -> None:
        """Keep the catalog of ``sessions`` up to date, until cancelled."""
        try:
            while True:
                self.look(sessions)
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for task in self._asking.values():
                task.cancel()

    def look(self, sessions: Sessions) -> None:
        """Judge every model by what is known now, and ask those that are in doubt."""
        now = self._monotonic()
        waiting = self._listen(sessions)
        self._signs.share(now)
        for model in sessions.catalog.triton_models():
            name, sign = model.name, self._signs[model.name]
            self._patience[name] = model.settings.first_token_timeout
            self._apply(sessions, model, sign)
            due = model.contract is not None and self._is_due(name, sign, waiting.get(name), now)
            if due and name not in self._asking and self._signs.claim(name):
                self._asking[name] = asyncio.create_task(self._ask(sessions.catalog, name))

    def _listen(self, sessions: Sessions) -> dict[str, float]:
        """Note what is heard in answers under way; since when the longest-waiting request waits, by model."""
        waiting: dict[str, float] = {}
        for exchange in sessions.exchanges():
            name = exchange.report.model
            if name not in self._patience:
                continue
            if exchange.phase is Calling:
                called_at = exchange.report.timing.called_at
                waiting[name] = min(called_at, waiting.get(name, called_at))
            else:
                self._signs.heard(name, exchange.heard_at)
        return waiting

    def _apply(self, sessions: Sessions, model: ServedModel, sign: Sign) -> None:
        outage = None
        if sign.fails:
            outage = errors.outage_of(sign.failure)
        elif not sign.heard_at:
            outage = errors.STARTING
        if outage != model.outage:
            sessions.catalog = sessions.catalog.with_outage(model.name, outage)
            if outage is None:
                _log.info("model %s: answers", model.name)
            elif outage is not errors.STARTING:
                _log.warning("model %s: does not answer (%s); requests are refused", model.name, outage.name)
        if sign.fails and sign.hangs:
            sessions.abort_waiting(model.name, errors.timeout())

    def _is_due(self, name: str, sign: Sign, waiting: float | None, now: float) -> bool:
        """Whether a canary is due."""
        since_asked = now - sign.asked_at if sign.asked_at else inf
        if not sign.heard_at or sign.fails or self._failing.get(name, 0.0) > sign.heard_at:
            return since_asked >= _PAUSE_SECONDS
        doubted = max(self._doubted.get(name, 0.0), self._contracts.missing.get(name, 0.0)) > sign.heard_at
        silent = waiting is not None and now - max(waiting, sign.heard_at) >= self._patience[name] * _SHARE
        return silent or (doubted and since_asked >= _WELL_SECONDS)

    def _canary_seconds(self, name: str) -> float:
        patience = self._patience[name]
        return max(patience * _SHARE, min(patience, _LEAST_SECONDS))

    async def _ask(self, catalog: Catalog, name: str) -> None:
        """Send a canary, and note what comes of it."""
        sent_at = self._monotonic()
        self._signs.asked(name, sent_at)
        try:
            failure = await self._failure(catalog, name)
        finally:
            self._signs.release(name)
            del self._asking[name]
        now = self._monotonic()
        if failure is None:
            self._signs.heard(name, now)
            return
        if failure in _OF_THE_CONTRACT:
            self._contracts.doubt()
        heard_at = self._signs[name].heard_at
        first = self._failing[name] = sent_at if self._failing.get(name, 0.0) <= heard_at else self._failing[name]
        if heard_at < first and (not heard_at or now - first >= _CERTAIN_SECONDS):
            self._signs.failed(name, first, failure, hangs=self._signs[name].fails and self._signs[name].hangs)

    async def _failure(self, catalog: Catalog, name: str) -> str | None:
        """Send a canary; the name of its failure, ``None`` where it is answered."""
        canary = canary_of(catalog, name, entropy=os.urandom(18), unix_time=time.time())
        if canary is None:
            # Then only requests tell.
            return None
        try:
            await first_token(await self._way(), canary.request, canary.reader, self._canary_seconds(name))
        except BackendError as error:
            return error.failure
        except ApiError:
            return "failed"
        except Exception:
            _log.exception("model %s: the canary could not be sent", name)
            return "failed"
        return None
