"""Preparing a request in another process, one that was forked when the models had been loaded.

There and back go only what a request brings: the models with their tokenizers, and the surfaces with their keys, are on
both sides, and are told by their names.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sidecar.admission.directives import Directives
from sidecar.backends.failure import Failure
from sidecar.backends.triton.contracts.contract import Contract
from sidecar.exchange.asks import Facts
from sidecar.exchange.catalog import Catalog, ServedModel, ServedNative
from sidecar.exchange.direct import Direct
from sidecar.exchange.earlier import Continued, Earlier
from sidecar.exchange.events import RequestComplete
from sidecar.exchange.plan import Prepare, make_plan
from sidecar.exchange.planned import Plan
from sidecar.responses.sealing import Sealer
from sidecar.surfaces.surface import Surface


@dataclass(frozen=True, slots=True)
class Call:
    """What a fork has to know besides the request's body: ``request`` comes without it.

    ``contracts`` are those of the models whose contract is known, by the model's name, ``outages`` those of the models
    that have one, ``resting`` the routes that rest.
    """

    surface: str
    contracts: Mapping[str, Contract]
    outages: Mapping[str, Failure]
    resting: frozenset[tuple[str, str]]
    request: RequestComplete
    entropy: bytes
    earlier: Earlier | None
    directives: Directives | None


class Elsewhere:
    """Both sides of the way: :meth:`call_of` and :meth:`read` are the worker's, :meth:`work` is a fork's.

    ``catalog`` and ``surfaces`` are what was loaded before the fork.
    """

    def __init__(self, catalog: Catalog, surfaces: Mapping[str, Surface]) -> None:
        self._catalog = catalog
        self._surfaces = surfaces

    def call_of(self, ask: Prepare) -> Call:
        """The call for a request."""
        facts = ask.facts
        surface = next(name for name, surface in self._surfaces.items() if surface is facts.surface)
        models = facts.catalog.triton_models()
        return Call(
            surface,
            {model.name: model.contract for model in models if model.contract is not None},
            {model.name: model.outage for model in models if model.outage is not None},
            facts.catalog.resting(),
            replace(facts.request, body=b""),
            facts.entropy,
            ask.earlier,
            facts.get(Direct),
        )

    def work(self, call: Call, body: bytes) -> bytes:
        """The plan for a request, written down.

        Raises:
            ApiError: as :func:`make_plan`.
        """
        catalog = self._catalog
        for name, contract in call.contracts.items():
            catalog = catalog.with_contract(name, contract)
        for name, outage in call.outages.items():
            catalog = catalog.with_outage(name, outage)
        for name, upstream in call.resting:
            catalog = catalog.with_rest(name, upstream, rests=True)
        surface = self._surfaces[call.surface]
        written = io.BytesIO()
        facts = Facts(surface, catalog, replace(call.request, body=body), call.entropy)
        if call.directives is not None:
            facts.add(Direct, call.directives)
        plan = make_plan(facts, call.earlier)
        _Writer(written, pickle.HIGHEST_PROTOCOL).dump(plan)
        return written.getvalue()

    def read(self, written: bytes, facts: Facts) -> Plan | Continued:
        """The plan that was written down for a request."""
        plan: Plan | Continued = _Reader(written, facts).load()
        return plan


class _Writer(pickle.Pickler):
    def persistent_id(self, value: Any) -> str | None:
        if isinstance(value, ServedModel | ServedNative):
            return value.name
        return "" if isinstance(value, Sealer) else None


class _Reader(pickle.Unpickler):
    def __init__(self, written: bytes, facts: Facts) -> None:
        super().__init__(io.BytesIO(written))
        self._facts = facts

    def persistent_load(self, name: str) -> Any:
        return self._facts.catalog.model(name) if name else self._facts.surface.sealer
