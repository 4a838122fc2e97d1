"""JSON Schemas in few words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sidecar.responses.json_text import Json

_SCHEMAS = "#/components/schemas/"
REF_TEMPLATE = _SCHEMAS + "{model}"

STRING: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}
BOOLEAN: Json = {"type": "boolean"}
COUNT: Json = {"type": "integer", "minimum": 0}
UNIX_TIME: Json = {"type": "integer", "description": "Seconds since the epoch."}


def object_of(description: str, members: Mapping[str, Json], optional: tuple[str, ...] = ()) -> Json:
    """An object with ``members``, all required but the ``optional`` ones."""
    return {
        "type": "object",
        "description": description,
        "properties": dict(members),
        "required": [name for name in members if name not in optional],
    }


def ref(name: str) -> Json:
    """The schema ``name`` of the document."""
    return {"$ref": REF_TEMPLATE.format(model=name)}


def list_of(items: Json) -> Json:
    """An array."""
    return {"type": "array", "items": items}


def or_null(schema: Json) -> Json:
    """``schema`` or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def const(value: Any) -> Json:
    """One value."""
    return {"const": value}


def own_references(schema: Any) -> Iterator[str]:
    """The names of the schemas that ``schema`` itself refers to."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith(_SCHEMAS):
            yield reference.removeprefix(_SCHEMAS)
        for value in schema.values():
            yield from own_references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from own_references(value)


def references(schema: Any, schemas: Mapping[str, Json]) -> set[str]:
    """The names of all schemas that ``schema`` needs, by way of others too."""
    found = set[str]()
    new = set(own_references(schema))
    while new:
        found |= new
        new = {name for known in new for name in own_references(schemas[known])} - found
    return found
