"""The document itself: paths from the surface's endpoints, schemas of all that they refer to."""

from __future__ import annotations

from functools import cache

from sidecar.responses.json_text import Json
from sidecar.surfaces.endpoints import SESSION_COOKIE, Endpoint
from sidecar.surfaces.openapi.answers import SHARED_SCHEMAS, error_schemas
from sidecar.surfaces.openapi.events import EVENT_SCHEMAS
from sidecar.surfaces.openapi.operations import HEADERS, OPERATIONS
from sidecar.surfaces.openapi.request import request_schemas
from sidecar.surfaces.openapi.shorthand import references
from sidecar.surfaces.surface import Surface

_SCHEMES: dict[str, Json] = {
    "key": {"type": "http", "scheme": "bearer", "description": "An API key or token."},
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description": "Of a console's login."},
}


@cache
def document(surface: Surface) -> Json:
    """The OpenAPI 3.1 document of ``surface``; always the same for the same code."""
    paths: dict[str, Json] = {}
    for endpoint in surface.endpoints:
        operation = {**OPERATIONS[endpoint.operation](surface), "security": _security(endpoint)}
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    schemas = {
        **request_schemas(surface),
        **SHARED_SCHEMAS,
        **EVENT_SCHEMAS,
        **error_schemas(surface.codes),
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
        "paths": paths,
        "components": {
            "headers": HEADERS,
            "securitySchemes": _SCHEMES,
            "schemas": {name: schema for name, schema in schemas.items() if name in used},
        },
    }


def _security(endpoint: Endpoint) -> list[Json]:
    """One of the schemes, with the scope that the endpoint needs; none where it needs no credential."""
    return [{scheme: [endpoint.scope]} for scheme in _SCHEMES] if endpoint.scope is not None else []
