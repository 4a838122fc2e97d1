"""The document itself: paths from the surface's endpoints, errors from the table of codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from sidecar.responses.errors import CODES
from sidecar.responses.json_text import Json
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.openapi.answers import SHARED_SCHEMAS, error_schema
from sidecar.surfaces.openapi.request import request_schemas
from sidecar.surfaces.openapi.shorthand import ref, references
from sidecar.surfaces.surface import Surface


@cache
def document(surface: Surface) -> Json:
    """The OpenAPI 3.1 document of ``surface``; always the same for the same code."""
    paths: dict[str, Json] = {}
    for endpoint in surface.endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _OPERATIONS[endpoint.operation](surface)
    schemas = {
        **request_schemas(surface),
        **SHARED_SCHEMAS,
        "Error": error_schema(surface.codes),
        **surface.schemas,
    }
    used = references(paths, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": surface.title,
            "version": "1",
            "description": surface.description,
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {name: schema for name, schema in schemas.items() if name in used},
        },
    }


def _json(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _errors(codes: Iterable[str]) -> dict[str, Json]:
    """One answer for each status that ``codes`` have."""
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(CODES[code].status, []).append(f"`{code}`: {CODES[code].meaning}")
    return {str(status): _json("\n\n".join(lines), ref("Error")) for status, lines in sorted(by_status.items())}


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
# What befalls another path or method only.
_ELSEWHERE = ("not_found", "method_not_allowed")


def _create_response(surface: Surface) -> Json:
    return {
        "operationId": "createResponse",
        "summary": "Create a response",
        "requestBody": {"required": True, "content": {"application/json": {"schema": ref("CreateResponse")}}},
        "responses": {
            "200": {
                "description": "The response, or its events with `stream: true`.",
                "content": {
                    "application/json": {"schema": ref("Response")},
                    "text/event-stream": {"schema": {"description": "Server-sent events; the data of each is JSON."}},
                },
            },
            **_errors(code for code in surface.codes if code not in _ELSEWHERE),
        },
    }


def _list_models(surface: Surface) -> Json:
    return {
        "operationId": "listModels",
        "summary": "List the models",
        "responses": {"200": _json("The models.", ref("ModelList")), **_errors(_ALWAYS)},
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
        "responses": {"200": _json("The model.", ref("Model")), **_errors((*_ALWAYS, "model_not_available"))},
    }


def _read_openapi(surface: Surface) -> Json:
    return {
        "operationId": "readOpenApi",
        "summary": "Read this document",
        "security": [],
        "responses": {
            "200": _json("An OpenAPI 3.1 document.", {"type": "object"}),
            **_errors(("invalid_request", "payload_too_large", "internal", "node_unavailable")),
        },
    }


_OPERATIONS: dict[Operation, Callable[[Surface], Json]] = {
    Operation.CREATE_RESPONSE: _create_response,
    Operation.LIST_MODELS: _list_models,
    Operation.RETRIEVE_MODEL: _retrieve_model,
    Operation.READ_OPENAPI: _read_openapi,
}
