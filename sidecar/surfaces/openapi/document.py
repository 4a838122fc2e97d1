"""The document itself: paths from the surface's endpoints, schemas of all that they refer to."""

from __future__ import annotations

from functools import cache

from sidecar.responses.json_text import Json
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
    for endpoint in surface.endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = OPERATIONS[endpoint.operation](surface)
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
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "headers": HEADERS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {name: schema for name, schema in schemas.items() if name in used},
        },
    }
