"""The JSON Schemas of receipts, which :mod:`sidecar.admission.receipts` makes."""

from __future__ import annotations

from sidecar.responses.json_text import Json
from sidecar.surfaces.openapi.shorthand import (
    BOOLEAN,
    COUNT,
    STRING,
    UNIX_TIME,
    const,
    list_of,
    object_of,
    or_null,
    ref,
)

_AMOUNT: Json = {"type": "string", "description": "A decimal amount of the currency in `price`."}
_DAY: Json = {"type": "string", "format": "date"}
_MILLION: Json = {"type": "string", "description": "What a million tokens cost, as a decimal."}

RECEIPT_SCHEMAS: dict[str, Json] = {
    "Request": object_of(
        "What became of a request.",
        {
            "id": STRING | {"description": "The `x-request-id` that it was answered with."},
            "object": const("request"),
            "created_at": UNIX_TIME,
            "endpoint": STRING,
            "response_id": or_null(STRING),
            "client_request_id": or_null(STRING),
            "model": STRING,
            "route": or_null(STRING | {"description": "The last that was tried."}),
            "attempts": list_of(ref("RequestAttempt")),
            "stream": BOOLEAN,
            "outcome": STRING | {"description": "`in_progress`, `completed`, `incomplete`, `client_gone` or a code."},
            "usage": or_null(ref("RequestUsage")),
            "price": or_null(ref("RequestPrice")),
            "hold": _AMOUNT,
            "charge": or_null(_AMOUNT),
            "timings": ref("RequestTimings"),
            "organization": STRING,
            "project": or_null(STRING),
            "environment": or_null(STRING),
            "key": or_null(STRING),
            "end_user": or_null(STRING),
            "tags": list_of(STRING),
            "session": or_null(STRING),
        },
    ),
    "RequestAttempt": object_of(
        "One route that was tried.",
        {
            "route": STRING,
            "outcome": STRING,
            "status": or_null(COUNT | {"description": "The upstream's."}),
            "ms": or_null(COUNT | {"description": "Milliseconds until the head of its answer."}),
        },
    ),
    "RequestUsage": object_of(
        "Tokens; the cached ones are some of the input, those of reasoning some of the output.",
        dict.fromkeys(("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"), COUNT),
    ),
    "RequestPrice": object_of(
        "The price that held.",
        {
            "from": _DAY,
            "currency": STRING,
            "input": _MILLION,
            "cached_input": _MILLION,
            "output": _MILLION,
            "per_search": {"type": "string", "description": "What a web search cost, where some were made."},
            "searches": COUNT,
        },
        optional=("per_search", "searches"),
    ),
    "RequestTimings": object_of(
        "When it was admitted, and milliseconds from its head.",
        {
            "started_at": {"type": "string", "format": "date-time"},
            "first_token_ms": or_null(COUNT),
            "total_ms": or_null(COUNT),
        },
    ),
    "RequestList": object_of(
        "A page of receipts.",
        {
            "object": const("list"),
            "data": list_of(ref("Request")),
            "first_id": or_null(STRING),
            "last_id": or_null(STRING),
            "has_more": BOOLEAN,
        },
    ),
}
