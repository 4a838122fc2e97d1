"""The size of a JSON Schema in a request. Whether it is a schema, and one that a grammar can follow, is asked later."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from sidecar.responses.request_model import fault

MAX_BYTES = 64 * 1024
MAX_LEVELS = 32


def _within_limits(schema: dict[str, Any]) -> dict[str, Any]:
    if _is_deeper(schema, MAX_LEVELS):
        raise fault(f"The JSON Schema at '{{path}}' is nested deeper than {MAX_LEVELS} levels.")
    size = len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_BYTES:
        raise fault(f"The JSON Schema at '{{path}}' is {size} bytes; at most {MAX_BYTES} are accepted.")
    return schema


def _is_deeper(schema: dict[str, Any], levels: int) -> bool:
    """Whether there are more levels of objects and arrays."""
    # An agent sends hundreds of schemas with each turn: a level at a time takes a third of a call for each value.
    level: list[Any] = [schema]
    for _ in range(levels):
        level = [
            value
            for outer in level
            for value in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(value, (dict, list))
        ]
        if not level:
            return False
    return True


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
