"""A canary: the smallest request that there is for a model of Triton's, made as any client's is, for one token."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from sidecar.backends.triton.reader import TritonReader
from sidecar.exchange.asks import Facts
from sidecar.exchange.catalog import Catalog
from sidecar.exchange.events import RequestComplete
from sidecar.exchange.plan import TritonPlan, make_plan
from sidecar.responses.errors import ApiError
from sidecar.surfaces import SURFACES

REQUEST_ID = "canary_"
"""How Triton's ids of canaries begin."""

_SURFACE = SURFACES["node"]
_HEADERS = {":method": "POST", ":path": f"{_SURFACE.base}/responses", "content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Canary:
    """``request`` is a serialized ``ModelInferRequest``, ``reader`` reads what comes of it."""

    request: bytes
    reader: TritonReader


def canary_of(catalog: Catalog, name: str, *, entropy: bytes, unix_time: float) -> Canary | None:
    """The canary for the model ``name`` of Triton's; ``None`` where it takes no request as simple as that.

    ``entropy`` is 18 random bytes, ``unix_time`` in seconds since the epoch.
    """
    body = json.dumps({"model": name, "input": "Hi", "max_output_tokens": 1, "temperature": 0}).encode()
    request = RequestComplete(_HEADERS, body, len(body), head_at=0.0, unix_time=unix_time, at=0.0)
    try:
        plan = make_plan(Facts(_SURFACE, catalog.with_outage(name, None), request, entropy))
    except ApiError:
        return None
    assert isinstance(plan, TritonPlan)
    generation = replace(plan.generation, request_id=f"{REQUEST_ID}{plan.ids.ulid}")
    return Canary(plan.contract.request(plan.model.settings.triton_model, generation), plan.reader())
