"""Where schemas stand in a schema.

Everything else in it is a value (``const``, ``enum``, ``default`` …), whatever its members are called, and is never
rewritten. Source: the applicators of JSON Schema from draft-04 to 2020-12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
"""The steps of a JSON pointer."""

DEFINITIONS = frozenset({"$defs", "definitions"})
BY_NAME = DEFINITIONS | {"dependentSchemas", "patternProperties", "properties"}
"""Keywords that hold schemas by name."""

_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[Path, Path, Any]]:
    """Each schema right inside ``schema``: its path, its path in the words of 2020-12, and itself.

    A schema that has not been checked yet may hold anything; what is no schema where one should be is left out.
    """
    for key, value in schema.items():
        if key in BY_NAME and isinstance(value, dict):
            for name, member in value.items():
                yield (key, name), (key, name), member
        elif key == "dependencies" and isinstance(value, dict):
            for name, member in value.items():
                if not isinstance(member, list):
                    yield (key, name), ("dependentSchemas", name), member
        elif isinstance(value, list) and (key in _LISTS or key == "items"):
            for index, member in enumerate(value):
                yield (key, str(index)), ("prefixItems" if key == "items" else key, str(index)), member
        elif key in _SINGLE:
            yield (key,), (key,), value
        elif key == "additionalItems" and isinstance(schema.get("items"), list):
            yield (key,), ("items",), value
