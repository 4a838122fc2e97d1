"""The bureau's error body: OpenAI's four members, and the id by which the request is found again."""

from __future__ import annotations

from sidecar.responses.errors import CODES, ApiError
from sidecar.responses.json_text import Json
from sidecar.surfaces.openapi.answers import error_schemas
from sidecar.surfaces.openapi.shorthand import STRING


def error_members(error: ApiError, request_id: str) -> Json:
    """The five members of ``error``, all of them always there."""
    return {**error.fields(), "request_id": request_id}


_OF_ANY_SURFACE: Json = error_schemas(tuple(CODES))["ErrorDetails"]

ERROR_DETAILS: Json = {
    **_OF_ANY_SURFACE,
    "properties": {
        **_OF_ANY_SURFACE["properties"],
        "request_id": STRING | {"description": "The same as the header `x-request-id`."},
    },
    "required": [*_OF_ANY_SURFACE["required"], "request_id"],
}
"""The JSON Schema of those members."""
