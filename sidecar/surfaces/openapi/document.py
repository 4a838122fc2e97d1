"""The document itself: paths from the surface's endpoints, schemas of all that they refer to."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sidecar.responses.json_text import Json
from sidecar.surfaces.credentials import Credentials
from sidecar.surfaces.endpoints import SESSION_COOKIE, Endpoint
from sidecar.surfaces.openapi.answers import SHARED_SCHEMAS, error_schemas
from sidecar.surfaces.openapi.events import EVENT_SCHEMAS
from sidecar.surfaces.openapi.operations import HEADERS, OPERATIONS
from sidecar.surfaces.openapi.request import request_schemas
from sidecar.surfaces.openapi.shorthand import references
from sidecar.surfaces.surface import Surface


@cache
def document(surface: Surface) -> Json:
    """The OpenAPI 3.1 document of ``surface``; always the same for the same code."""
    paths: dict[str, Json] = {}
    schemes = _schemes(surface.credentials)
    for endpoint in surface.endpoints:
        operation = {**OPERATIONS[endpoint.operation](surface), "security": _security(endpoint, schemes)}
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
            "securitySchemes": schemes,
            "schemas": {name: schema for name, schema in schemas.items() if name in used},
        },
    }


def _schemes(credentials: Credentials) -> dict[str, Json]:
    """Where a request may show its credential."""
    words = "An API key or token." if "token" in credentials.keys else "An API key."
    schemes: dict[str, Json] = {"key": {"type": "http", "scheme": "bearer", "description": words}}
    if credentials.key_header is not None:
        schemes["key_header"] = {"type": "apiKey", "in": "header", "name": credentials.key_header, "description": words}
    if credentials.sessions:
        words = "Of a console's login."
        schemes["session"] = {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description": words}
    return schemes


def _security(endpoint: Endpoint, schemes: Iterable[str]) -> list[Json]:
    """One of the schemes, with the scope that the endpoint needs; none where it needs no credential."""
    return [{scheme: [endpoint.scope]} for scheme in schemes] if endpoint.scope is not None else []
