"""JSON for arguments that a model writes as bare text, chosen by the types that the function's schema allows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sidecar.generation.json_scanner import whole_value

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
_SAFE_PATTERN = re.compile(
    r"\^?(?:(?:[^\\\[\](){}*+?|^$]|\\[dws.\-]|\[\^?[\w \-]+\])(?:[*+?]|\{\d{1,2}(?:,\d{0,2})?\})?){0,30}\$?"
)
_REPEATS = re.compile(r"[*+{]")
_MOST_REPEATS = 2
_LONGEST_NAME = 64
_MOST_REFERENCES = 100


def types_of(schema: Mapping[str, Any], parameter: str) -> frozenset[str]:
    """The JSON types that ``parameter`` of an object with this JSON Schema may have, wherever the schema says so.

    Integers count as numbers. What the schema does not say, or says in contradiction, allows all.
    """
    return _Types(schema).of_member(schema, parameter) or _ALL


def json_of(text: str, types: frozenset[str]) -> str:
    """``text`` as it is where that is JSON, or a literal of Python, of one of ``types``; else a JSON string of it.

    A schema that allows strings only makes a string of everything; one that allows none looks into quotes. Where all is
    allowed, only JSON is more than text.
    """
    as_string = json.dumps(text, ensure_ascii=False)
    if types == {"string"}:
        return as_string
    value = _value(text.strip(), types)
    if value is None and "string" not in types and text.strip()[:1] in ('"', "'"):
        quoted = whole_value(text.strip())
        value = _value(json.loads(quoted).strip(), types) if quoted and quoted[0] == '"' else None
    return as_string if value is None else value


def _value(text: str, types: frozenset[str]) -> str | None:
    """The JSON of ``text`` that is of one of ``types``."""
    for value in (text, whole_value(text) if types != _ALL or text in ("True", "False", "None") else None):
        try:
            if value is not None and _BY_PYTHON_TYPE[type(json.loads(value, parse_constant=_refuse))] in types:
                return value
        except (ValueError, RecursionError):
            pass
    return None


class _Types:
    """Asks one schema for types. ``None`` stands for a schema that says nothing.

    Each reference is followed once, and no more than a chain of them that could mean something.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._followed: set[tuple[str, bool]] = set()

    def of_member(self, schema: Any, name: str) -> frozenset[str] | None:
        """The types of the member ``name`` of what ``schema`` describes."""
        if not isinstance(schema, dict):
            return None
        return _all_of([self._declared(schema, name), *self._combined(schema, name)])

    def of_value(self, schema: Any) -> frozenset[str] | None:
        """The types of what ``schema`` describes."""
        if not isinstance(schema, dict):
            return None
        said: list[frozenset[str] | None] = []
        if "type" in schema:
            names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            said.append(frozenset("number" if name == "integer" else name for name in names if isinstance(name, str)))
        if "const" in schema:
            said.append(frozenset((_BY_PYTHON_TYPE[type(schema["const"])],)))
        if isinstance(schema.get("enum"), list):
            said.append(frozenset(_BY_PYTHON_TYPE[type(value)] for value in schema["enum"]))
        return _all_of([*said, *self._combined(schema, None)])

    def _combined(self, schema: dict[str, Any], name: str | None) -> list[frozenset[str] | None]:
        """What the schemas say that ``schema`` refers to or combines; of the value itself where ``name`` is None."""

        def ask(part: Any) -> frozenset[str] | None:
            return self.of_value(part) if name is None else self.of_member(part, name)

        said: list[frozenset[str] | None] = []
        reference = schema.get("$ref")
        if isinstance(reference, str) and len(self._followed) < _MOST_REFERENCES:
            step = (reference, name is None)
            repeated = step in self._followed
            self._followed.add(step)
            said.append(None if repeated else ask(_resolve(reference, self._root)))
        for combination in ("anyOf", "oneOf"):
            if isinstance(schema.get(combination), list):
                branches = [types for types in map(ask, schema[combination]) if types is not None]
                said.append(frozenset().union(*branches) if branches else None)
        if isinstance(schema.get("allOf"), list):
            said += map(ask, schema["allOf"])
        return said

    def _declared(self, schema: dict[str, Any], name: str) -> frozenset[str] | None:
        """What ``schema`` itself says of its member ``name``."""
        properties, patterns = schema.get("properties"), schema.get("patternProperties")
        said = []
        if isinstance(properties, dict) and name in properties:
            said.append(self.of_value(properties[name]))
        if isinstance(patterns, dict):
            for pattern, part in patterns.items():
                matches = _matches(pattern, name)
                if matches is None:
                    # It may describe the member or not.
                    said.append(None)
                elif matches:
                    said.append(self.of_value(part))
        return _all_of(said) if said else self.of_value(schema.get("additionalProperties"))


def _all_of(said: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """The types that all allow that say something; ``None`` where nothing is said."""
    types = None
    for each in said:
        if each is not None:
            types = each if types is None else types & each
    return types


def _matches(pattern: str, name: str) -> bool | None:
    """Whether ``pattern`` is found in ``name``; ``None`` where that could take long to tell."""
    if len(name) > _LONGEST_NAME or not _SAFE_PATTERN.fullmatch(pattern):
        return None
    if len(_REPEATS.findall(pattern)) > _MOST_REPEATS:
        return None
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return None


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    """What a JSON Pointer into the schema itself points to; ``None`` where to nothing."""
    if not reference.startswith("#"):
        return None
    target: Any = root
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and key.isascii() and key.isdigit() and int(key) < len(target):
            target = target[int(key)]
        else:
            target = target.get(key) if isinstance(target, dict) else None
    return target


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
