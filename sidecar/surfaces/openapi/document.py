"""The document itself: paths from the surface's endpoints, errors from the table of codes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from http import HTTPStatus

from sidecar.responses.errors import CODES
from sidecar.responses.open_items import Json
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.openapi.answers import ANSWER_SCHEMAS
from sidecar.surfaces.openapi.request import REF_TEMPLATE, request_schemas
from sidecar.surfaces.surface import Surface


@cache
def document(surface: Surface) -> Json:
    """The OpenAPI 3.1 document of ``surface``; always the same for the same code."""
    paths: dict[str, Json] = {}
    for endpoint in surface.endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _OPERATIONS[endpoint.operation]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Responses API",
            "version": "1",
            "description": "A stateless subset of the OpenAI Responses API on the node's own models.",
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {**request_schemas(surface.narrowed), **ANSWER_SCHEMAS},
        },
    }


def _ref(name: str) -> Json:
    return {"$ref": REF_TEMPLATE.format(model=name)}


def _json(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _errors(codes: Iterable[str]) -> dict[str, Json]:
    """One answer for each status that ``codes`` have."""
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(CODES[code].status, []).append(f"`{code}`: {CODES[code].meaning}")
    return {str(status): _json("\n\n".join(lines), _ref("Error")) for status, lines in sorted(by_status.items())}


# What can befall any request that needs a key, whatever it is for.
_ALWAYS = (
    "invalid_request",
    "unauthorized",
    "forbidden",
    "payload_too_large",
    "rate_limited",
    "internal",
    "node_unavailable",
)
# The rest of the table, but for what another path or method gets.
_CREATING = tuple(code for code in CODES if code not in ("not_found", "method_not_allowed"))
# Statuses of one code that differ from the table's.
_OVERRIDDEN = {
    str(HTTPStatus.BAD_GATEWAY.value): _json(
        "`infer_backend_unavailable`: The answer does not fit the format that the request demands.", _ref("Error")
    ),
    str(HTTPStatus.GATEWAY_TIMEOUT.value): _json(
        "`infer_backend_unavailable`: The model runtime did not answer in time.", _ref("Error")
    ),
}

_OPERATIONS: dict[Operation, Json] = {
    Operation.CREATE_RESPONSE: {
        "operationId": "createResponse",
        "summary": "Create a response",
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ref("CreateResponse")}}},
        "responses": {
            "200": {
                "description": "The response, or its events with `stream: true`.",
                "content": {
                    "application/json": {"schema": _ref("Response")},
                    "text/event-stream": {"schema": {"description": "Server-sent events; the data of each is JSON."}},
                },
            },
            **_errors(_CREATING),
            **_OVERRIDDEN,
        },
    },
    Operation.LIST_MODELS: {
        "operationId": "listModels",
        "summary": "List the models",
        "responses": {"200": _json("The models.", _ref("ModelList")), **_errors(_ALWAYS)},
    },
    Operation.RETRIEVE_MODEL: {
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
        "responses": {"200": _json("The model.", _ref("Model")), **_errors((*_ALWAYS, "model_not_available"))},
    },
    Operation.READ_OPENAPI: {
        "operationId": "readOpenApi",
        "summary": "Read this document",
        "security": [],
        "responses": {
            "200": _json("An OpenAPI 3.1 document.", {"type": "object"}),
            **_errors(("invalid_request", "payload_too_large", "internal", "node_unavailable")),
        },
    },
}
