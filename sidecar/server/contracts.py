"""Keeps the contracts in the catalog those that Triton's models speak now."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from sidecar.backends.triton.client import TritonUnreachableError, discover_all
from sidecar.backends.triton.contracts.contract import Contract
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


async def _nowhere() -> str | None:
    return None


class Contracts:
    """Asks Triton for the contracts of all models, again and again: one can be loaded anew under its name any time.

    Requests for a model are refused with 503 until its contract is known. A contract once known is kept until there is
    another one. As an observer it looks at once when a request's failure makes a contract doubtful.
    """

    def __init__(self, address: str | None, other_way: Callable[[], Awaitable[str | None]] = _nowhere) -> None:
        """``address`` is ``host:port`` of Triton's gRPC service, where there is one: else nobody is asked.

        Where it does not answer, who is asked is at ``other_way``, a name as gRPC has it, as long as there is one.
        """
        self.missing: dict[str, float] = {}
        """When a model was asked about last, on the monotonic clock, of those that Triton did not answer for."""
        self._address = address
        self._other_way = other_way
        self._doubted = asyncio.Event()
        self._told: dict[str, str] = {}

    @property
    def doubted(self) -> bool:
        """Whether they are about to be looked at."""
        return self._doubted.is_set()

    def doubt(self) -> None:
        """Look at once."""
        self._doubted.set()

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """Look at the failure that ended an exchange."""
        error = exchange.report.backend_error
        if exchange.done and error is not None and error.failure in _DOUBTFUL:
            self.doubt()

    async def keep(self, sessions: Sessions) -> None:
        """Keep the catalog of ``sessions`` up to date, until cancelled."""
        while self._address is not None:
            self._doubted.clear()
            all_known = await self.look(sessions)
            await asyncio.sleep(_SHORTEST_GAP_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._doubted.wait(), _LOOK_SECONDS if all_known else _RETRY_SECONDS)

    async def look(self, sessions: Sessions) -> bool:
        """Ask for all contracts once; whether all were told."""
        models = sessions.catalog.triton_models()
        found = await self._discover([model.settings.triton_model for model in models])
        for model, contract in zip(models, found, strict=True):
            if isinstance(contract, Exception):
                self._tell(logging.WARNING, model.name, str(contract))
                self.missing[model.name] = time.monotonic()
                continue
            self.missing.pop(model.name, None)
            self._tell(logging.INFO, model.name, f"contract {contract.name}")
            if contract != model.contract:
                sessions.catalog = sessions.catalog.with_contract(model.name, contract)
        return not any(isinstance(contract, Exception) for contract in found)

    async def _discover(self, models: list[str]) -> Sequence[Contract | Exception]:
        if self._address is None:
            return []
        found = await discover_all(self._address, models)
        if not any(isinstance(contract, TritonUnreachableError) for contract in found):
            return found
        other = await self._other_way()
        return found if other is None else await discover_all(other, models)

    def _tell(self, level: int, name: str, words: str) -> None:
        """Log what has changed."""
        if self._told.get(name) != words:
            self._told[name] = words
            _log.log(level, "model %s: %s", name, words)
