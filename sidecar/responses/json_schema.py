"""The size of a JSON Schema in a request. Whether it is a schema, and one that a grammar can follow, is asked later."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from sidecar.responses.request_model import fault

MAX_BYTES = 64 * 1024
MAX_LEVELS = 32


def _within_limits(schema: dict[str, Any]) -> dict[str, Any]:
    if _levels(schema) > MAX_LEVELS:
        raise fault(f"The JSON Schema at '{{path}}' is nested deeper than {MAX_LEVELS} levels.")
    size = len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_BYTES:
        raise fault(f"The JSON Schema at '{{path}}' is {size} bytes; at most {MAX_BYTES} are accepted.")
    return schema


def _levels(value: Any) -> int:
    """Levels of objects and arrays; the body's own limit on nesting bounds this recursion."""
    if isinstance(value, dict):
        return 1 + max(map(_levels, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_levels, value), default=0)
    return 0


JsonSchema = Annotated[
    dict[str, Any],
    AfterValidator(_within_limits),
    WithJsonSchema(
        {
            "type": "object",
            "description": f"A JSON Schema of at most {MAX_BYTES} bytes (without spaces) and {MAX_LEVELS} levels.",
        }
    ),
]
"""A JSON Schema object of at most :data:`MAX_BYTES` serialized without spaces and :data:`MAX_LEVELS` levels."""
