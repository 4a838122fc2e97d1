"""What each operation answers: bodies, headers and, from the table of codes, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sidecar.responses.errors import CHALLENGE, CODES
from sidecar.responses.json_text import Json, json_bytes
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.idempotency import IDEMPOTENCY_HEADER, REPLAYED_HEADER
from sidecar.surfaces.openapi.examples import error_example, event_examples, response_example
from sidecar.surfaces.openapi.shorthand import COUNT, STRING, ref
from sidecar.surfaces.surface import Surface

# What can befall any request that needs a key, whatever it is for.
_ALWAYS = (
    "invalid_request",
    "unauthorized",
    "forbidden",
    "method_not_allowed",
    "payload_too_large",
    "rate_limited",
    "internal",
    "node_unavailable",
)
_WITHOUT_KEY = ("invalid_request", "method_not_allowed", "payload_too_large", "internal", "node_unavailable")

RATE_LIMITS: dict[str, Json] = {
    f"x-ratelimit-{part}-{unit}": {"description": words.format(unit=unit), "schema": schema}
    for unit in ("requests", "tokens")
    for part, words, schema in (
        ("limit", "How many {unit} per minute are allowed, where that is limited.", COUNT),
        ("remaining", "How many {unit} are left of them.", COUNT),
        ("reset", "When all of the {unit} will be there again, as `12ms`, `1.5s` or `6m0s`.", STRING),
    )
}
"""How a client stands with its limits; on all answers of requests that were looked at by admission."""

HEADERS: dict[str, Json] = {
    "x-request-id": {"description": "Names the request in logs; on every answer.", "schema": STRING},
    "retry-after": {"description": "Seconds after which to try again, where waiting helps.", "schema": COUNT},
    "x-should-retry": {
        "description": "`false` where another try cannot help although the status would make an SDK try.",
        "schema": {"const": "false"},
    },
    "server-timing": {
        "description": "`ttft`: milliseconds to the first generated token. `total`: to the last; not on streams.",
        "schema": STRING,
    },
    "allow": {"description": "The methods that are allowed.", "schema": STRING},
    "www-authenticate": {"description": "How to say who you are.", "schema": {"const": CHALLENGE}},
    **RATE_LIMITS,
}
"""All headers that answers have beside those of HTTP itself, by name."""


def _headers(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("x-request-id", *names)}


def _json(description: str, schema: Json) -> Json:
    return {"description": description, "headers": _headers(), "content": {"application/json": {"schema": schema}}}


def _errors(surface: Surface, codes: Iterable[str], headers: Iterable[str] = ()) -> dict[str, Json]:
    """One answer for each status that those of ``codes`` have which the surface knows, with further ``headers``."""
    by_status: dict[int, list[str]] = {}
    for code in codes:
        if code in surface.codes and not CODES[code].in_streams:
            by_status.setdefault(CODES[code].status, []).append(code)
    return {str(status): _error(surface, of_status, headers) for status, of_status in sorted(by_status.items())}


def _error(surface: Surface, codes: list[str], headers: Iterable[str]) -> Json:
    kinds = [CODES[code] for code in codes]
    retry_after = any(kind.retry_after is not None for kind in kinds)
    never = any(not kind.should_retry for kind in kinds) or "infer_backend_unavailable" in codes
    names = ["retry-after"] * retry_after + ["x-should-retry"] * never + ["allow"] * ("method_not_allowed" in codes)
    names += ["www-authenticate"] * ("unauthorized" in codes)
    return {
        "description": "\n\n".join(f"`{code}`: {CODES[code].meaning}" for code in codes),
        "headers": _headers(*names, *headers),
        "content": {
            "application/json": {
                "schema": ref("Error"),
                "examples": {code: {"value": error_example(surface, code)} for code in codes},
            }
        },
    }


_REPLAYED: Json = {
    "description": "`true` where the answer was given before, to a request with the same idempotency key.",
    "schema": {"const": "true"},
}


def _request_headers(surface: Surface) -> Json:
    """The parameters of a request that is answered by a model, as far as they are headers."""
    headers = [
        {"name": name, "in": "header", "description": words, "schema": {"type": "string"}}
        for name, words in surface.headers.items()
    ]
    return {"parameters": headers} if headers else {}


def _replayed(surface: Surface) -> dict[str, Json]:
    """The header of an answer that is given again."""
    return {REPLAYED_HEADER: _REPLAYED} if IDEMPOTENCY_HEADER in surface.headers else {}


def _create_response(surface: Surface) -> Json:
    body = {"schema": ref("CreateResponse"), "examples": {"request": {"value": surface.example}}}
    events = {
        name: {"value": {"event": name, "data": json_bytes(event).decode()}}
        for name, event in event_examples(surface).items()
    }
    replayed = _replayed(surface)
    # Where no response is stored, what is not found is another path.
    stored = surface.has_stored_responses
    return {
        "operationId": "createResponse",
        "summary": "Create a response",
        **_request_headers(surface),
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": {
                "description": "The response, or its events with `stream: true`.",
                "headers": _headers("server-timing", *RATE_LIMITS) | replayed,
                "content": {
                    "application/json": {
                        "schema": ref("Response"),
                        "examples": {"response": {"value": response_example(surface)}},
                    },
                    "text/event-stream": {"schema": ref("ServerSentEvent"), "examples": events},
                },
            },
            **_errors(surface, (code for code in surface.codes if stored or code != "not_found"), RATE_LIMITS),
        },
    }


def _compact_response(surface: Surface) -> Json:
    body = {"schema": ref("CompactResponse")}
    answer = _json("The user's messages, then the rest of the conversation as one item.", ref("CompactedResponse"))
    return {
        "operationId": "compactResponse",
        "summary": "Compact a conversation",
        **_request_headers(surface),
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": {**answer, "headers": {**_headers("server-timing", *RATE_LIMITS), **_replayed(surface)}},
            **_errors(surface, surface.codes, RATE_LIMITS),
        },
    }


_RESPONSE_ID: Json = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The id of a response that is stored.",
    "schema": {"type": "string", "minLength": 1},
}


def _retrieve_response(surface: Surface) -> Json:
    words = "The response; of one that is still being made `id`, `object` and `status` alone."
    found = {"anyOf": [ref("Response"), ref("ResponseInProgress")]}
    return {
        "operationId": "retrieveResponse",
        "summary": "Fetch a stored response",
        "parameters": [_RESPONSE_ID],
        "responses": {"200": _json(words, found), **_errors(surface, (*_ALWAYS, "not_found"))},
    }


def _delete_response(surface: Surface) -> Json:
    return {
        "operationId": "deleteResponse",
        "summary": "Delete a stored response",
        "parameters": [_RESPONSE_ID],
        "responses": {
            "200": _json("It is deleted, and what continued it is continued no more.", ref("DeletedResponse")),
            **_errors(surface, (*_ALWAYS, "not_found")),
        },
    }


_PAGE: list[Json] = [
    {"name": name, "in": "query", "description": words, "schema": schema}
    for name, words, schema in (
        ("limit", "How many at most.", {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}),
        ("order", "`desc`: the newest first.", {"enum": ["asc", "desc"], "default": "desc"}),
        ("after", "The id of the one before the page, in its order.", {"type": "string"}),
    )
]


def _list_input_items(surface: Surface) -> Json:
    return {
        "operationId": "listInputItems",
        "summary": "List the items that a stored response was made from",
        "parameters": [_RESPONSE_ID, *_PAGE],
        "responses": {
            "200": _json("A page of them, those of earlier turns too.", ref("ItemList")),
            **_errors(surface, (*_ALWAYS, "not_found", "response_in_progress")),
        },
    }


def _list_requests(surface: Surface) -> Json:
    return {
        "operationId": "listRequests",
        "summary": "List what became of the project's requests",
        "parameters": _PAGE,
        "responses": {"200": _json("A page of receipts.", ref("RequestList")), **_errors(surface, _ALWAYS)},
    }


def _retrieve_request(surface: Surface) -> Json:
    of_a_request: Json = {"name": "id", "in": "path", "required": True, "description": "Its `x-request-id`."}
    return {
        "operationId": "retrieveRequest",
        "summary": "Look up what became of a request and what it cost",
        "parameters": [{**of_a_request, "schema": {"type": "string", "minLength": 1}}],
        "responses": {"200": _json("The receipt.", ref("Request")), **_errors(surface, (*_ALWAYS, "not_found"))},
    }


def _list_models(surface: Surface) -> Json:
    return {
        "operationId": "listModels",
        "summary": "List the models",
        "responses": {"200": _json("The models.", ref("ModelList")), **_errors(surface, _ALWAYS)},
    }


def _retrieve_model(surface: Surface) -> Json:
    return {
        "operationId": "retrieveModel",
        "summary": "Look up one model",
        "parameters": [
            {
                "name": "id",
                "in": "path",
                "required": True,
                "description": "A model's name or alias. Slashes may be percent-encoded or not.",
                "schema": {"type": "string", "minLength": 1},
            }
        ],
        "responses": {
            "200": _json("The model.", ref("Model")),
            **_errors(surface, (*_ALWAYS, "model_not_available")),
        },
    }


def _read_openapi(surface: Surface) -> Json:
    return {
        "operationId": "readOpenApi",
        "summary": "Read this document",
        "responses": {
            "200": _json("An OpenAPI 3.1 document.", {"type": "object"}),
            **_errors(surface, _WITHOUT_KEY),
        },
    }


OPERATIONS: dict[Operation, Callable[[Surface], Json]] = {
    Operation.CREATE_RESPONSE: _create_response,
    Operation.COMPACT_RESPONSE: _compact_response,
    Operation.RETRIEVE_RESPONSE: _retrieve_response,
    Operation.DELETE_RESPONSE: _delete_response,
    Operation.LIST_INPUT_ITEMS: _list_input_items,
    Operation.RETRIEVE_REQUEST: _retrieve_request,
    Operation.LIST_REQUESTS: _list_requests,
    Operation.LIST_MODELS: _list_models,
    Operation.RETRIEVE_MODEL: _retrieve_model,
    Operation.READ_OPENAPI: _read_openapi,
}
"""How an operation is described, by what it does."""
