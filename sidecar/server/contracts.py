"""Keeps the contracts in the catalog those that Triton's models speak now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from sidecar.backends.triton.client import discover_all
from sidecar.exchange.commands import Command
from sidecar.exchange.events import Event
from sidecar.exchange.exchange import Exchange
from sidecar.extproc.sessions import Sessions

# Two short calls for each model.
_LOOK_SECONDS = 5.0
_RETRY_SECONDS = 2.0
# However many requests fail.
_SHORTEST_GAP_SECONDS = 0.5

# Failures of requests that can mean that the model has gone, or come back as another one.
_DOUBTFUL = frozenset({"not_loaded", "other_tensors", "stopping", "unreachable", "ended_early"})

_log = logging.getLogger(__name__)


class Contracts:
    """Asks Triton for the contracts of all models, again and again: one can be loaded anew under its name any time.

    Requests for a model are refused with 503 until its contract is known. A contract once known is kept until there is
    another one. As an observer it looks at once when a request's failure makes a contract doubtful.
    """

    def __init__(self, address: str | None) -> None:
        """``address`` is ``host:port`` of Triton's gRPC service, where there is one: else nobody is asked."""
        self._address = address
        self._doubted = asyncio.Event()
        self._told: dict[str, str] = {}

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """Look at the failure that ended an exchange."""
        error = exchange.report.backend_error
        if exchange.done and error is not None and error.failure in _DOUBTFUL:
            self._doubted.set()

    async def keep(self, sessions: Sessions) -> None:
        """Keep the catalog of ``sessions`` up to date, until cancelled."""
        while self._address is not None:
            self._doubted.clear()
            all_known = await self._look(self._address, sessions)
            await asyncio.sleep(_SHORTEST_GAP_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._doubted.wait(), _LOOK_SECONDS if all_known else _RETRY_SECONDS)

    async def _look(self, address: str, sessions: Sessions) -> bool:
        """Ask for all contracts once; whether all were told."""
        models = sessions.catalog.triton_models()
        found = await discover_all(address, [model.settings.triton_model for model in models])
        for model, contract in zip(models, found, strict=True):
            if isinstance(contract, Exception):
                self._tell(logging.WARNING, model.name, str(contract))
                continue
            self._tell(logging.INFO, model.name, f"contract {contract.name}")
            if contract != model.contract:
                sessions.catalog = sessions.catalog.with_contract(model.name, contract)
        return not any(isinstance(contract, Exception) for contract in found)

    def _tell(self, level: int, name: str, words: str) -> None:
        """Log what has changed."""
        if self._told.get(name) != words:
            self._told[name] = words
            _log.log(level, "model %s: %s", name, words)
