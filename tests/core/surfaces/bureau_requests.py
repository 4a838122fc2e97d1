"""Requests to the bureau surface, and models of a catalog for it, in short."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from sidecar.exchange.events import RequestComplete
from sidecar.surfaces.bureau import BUREAU
from sidecar.surfaces.bureau.unions import BureauRequest
from tests.core import kit
from tests.core.surfaces.node_requests import JSON_HEADERS

SERVED = kit.model(
    context_length=10_000,
    catalog={
        "slug": "acme/letters",
        "aliases": [
            {"name": "org/fast", "preset": {"temperature": 0.2, "reasoning": {"effort": "low"}}},
            {"name": "org/fast", "team": "org_1", "preset": {"max_output_tokens": 7}},
        ],
    },
)


def accept(**parameters: Any) -> BureauRequest:
    values = {"model": "m", "input": "hi"} | parameters
    request = BUREAU.accept(JSON_HEADERS, json.dumps(values).encode())
    assert isinstance(request, BureauRequest)
    return request


def asked(headers: dict[str, str] | None = None, **body: Any) -> RequestComplete:
    """A request as it comes to an exchange of the surface."""
    event = kit.request(**{"model": "acme/letters", **body})
    return replace(event, headers={**event.headers, ":path": "/v1/responses", **(headers or {})})
