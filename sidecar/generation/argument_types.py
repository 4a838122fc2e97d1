"""JSON for arguments that a model writes as bare text, chosen by the types that the function's schema allows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_ALL = frozenset(("null", "boolean", "number", "string", "array", "object"))
_BY_PYTHON_TYPE = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_PYTHON_CONSTANTS = {"True": "true", "False": "false", "None": "null"}


def types_of(schema: Mapping[str, Any], parameter: str) -> frozenset[str]:
    """The JSON types that ``parameter`` of an object with this JSON Schema may have.

    Integers count as numbers. What the schema does not say, allows all.
    """
    properties = schema.get("properties")
    declared = properties.get(parameter) if isinstance(properties, dict) else None
    return _types(declared, schema, set()) or _ALL


def json_of(text: str, types: frozenset[str]) -> str:
    """``text`` as it is where that is JSON of one of ``types``, else a JSON string of it.

    A schema that allows strings only makes a string of everything. Python's spelling of constants is understood.
    """
    value = _PYTHON_CONSTANTS.get(text.strip(), text.strip())
    try:
        parsed = json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    kind = _BY_PYTHON_TYPE[type(parsed)]
    return value if kind in types and types != {"string"} else json.dumps(text, ensure_ascii=False)


def _types(schema: Any, root: Mapping[str, Any], followed: set[str]) -> frozenset[str]:
    """The types that ``schema`` or one of the schemas it combines names; a reference is followed once."""
    if not isinstance(schema, dict):
        return _ALL
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference in followed:
            return frozenset()
        followed.add(reference)
        return _types(_resolve(reference, root), root, followed)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return frozenset("number" if name == "integer" else name for name in names if isinstance(name, str))
    if "const" in schema:
        return frozenset((_BY_PYTHON_TYPE[type(schema["const"])],))
    if isinstance(schema.get("enum"), list):
        return frozenset(_BY_PYTHON_TYPE[type(value)] for value in schema["enum"])
    for combination in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(combination), list):
            return frozenset().union(*(_types(each, root, followed) for each in schema[combination]))
    return _ALL


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    """What a JSON Pointer into the schema itself points to; ``None`` where to nothing."""
    target: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        target = target.get(key) if isinstance(target, dict) else None
    return target


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
