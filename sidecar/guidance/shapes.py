"""Whether a document has the shape of a JSON Schema: what its meta-schema says, as a table, in one pass.

Each dialect checks the keywords that any dialect knows, since all of them are carried over into the latest. What says
nothing about a value (``title``, ``default``, ``format`` …) may hold anything, and so may ``pattern`` any text: it is
left to whoever has to match it. Draft-04 is taken without its bans on empty and repeated lists and boolean schemas,
which mean the same in it as later. Source: the meta-schemas of JSON Schema from draft-04 to 2020-12.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sidecar.guidance.dialects import DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09, LATEST, Dialect

Step = str | int
_Check = Callable[[Any], bool]
_Members = Callable[[Any], Iterable[tuple[Step | None, Any]] | None]
"""The schemas that a keyword's value holds, each with its name or index; ``None`` for a value of another shape."""

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def shape_fault(schema: Any, dialect: Dialect) -> str | None:
    """Where ``schema`` has another shape than ``dialect`` gives it, as ``.properties.a.type``; ``None`` if nowhere."""
    steps = _fault(schema, _TABLES[dialect])
    if steps is None:
        return None
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(steps))


@dataclass(frozen=True, slots=True)
class _Table:
    checks: Mapping[str, _Check]
    members: Mapping[str, _Members]


def _fault(schema: Any, table: _Table) -> list[Step] | None:
    """The steps to the first fault, the innermost first."""
    if not isinstance(schema, dict):
        return None if isinstance(schema, bool) else []
    for key, value in schema.items():
        check = table.checks.get(key)
        if check is not None:
            if not check(value):
                return [key]
            continue
        find = table.members.get(key)
        if find is None:
            continue
        members = find(value)
        if members is None:
            return [key]
        for step, member in members:
            steps = _fault(member, table)
            if steps is not None:
                return [*steps, key] if step is None else [*steps, step, key]
    return None


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    """A whole number, however it is written."""
    return _is_number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_divisor(value: Any) -> bool:
    return _is_number(value) and value > 0


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value) and len({*value}) == len(value)


def _are_types(value: Any) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _are_names(value) and bool(value) and _TYPES.issuperset(value)


def _are_names_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_are_names, value.values()))


def _are_booleans_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_boolean, value.values()))


def _is_like(pattern: str) -> _Check:
    matches = re.compile(pattern).fullmatch
    return lambda value: isinstance(value, str) and matches(value) is not None


def _one(value: Any) -> Iterable[tuple[Step | None, Any]]:
    return ((None, value),)


def _some(value: Any) -> Iterable[tuple[Step | None, Any]] | None:
    return enumerate(value) if isinstance(value, list) and value else None


def _one_or_some(value: Any) -> Iterable[tuple[Step | None, Any]] | None:
    return _some(value) if isinstance(value, list) else _one(value)


def _by_name(value: Any) -> Iterable[tuple[Step | None, Any]] | None:
    return value.items() if isinstance(value, dict) else None


def _by_name_or_names(value: Any) -> Iterable[tuple[Step | None, Any]] | None:
    if not isinstance(value, dict):
        return None
    # In the place of names that are none a schema that is none.
    return [
        (name, _are_names(member) or None if isinstance(member, list) else member) for name, member in value.items()
    ]


_CHECKS: dict[str, _Check] = {
    "$anchor": _is_like("[A-Za-z_][-A-Za-z0-9._]*"),
    "$dynamicAnchor": _is_like("[A-Za-z_][-A-Za-z0-9._]*"),
    "$dynamicRef": _is_text,
    "$id": _is_like("[^#]*#?"),
    "$recursiveAnchor": _is_like("[A-Za-z_][-A-Za-z0-9._]*"),
    "$recursiveRef": _is_text,
    "$ref": _is_text,
    "$vocabulary": _are_booleans_by_name,
    "dependentRequired": _are_names_by_name,
    "enum": _is_list,
    "exclusiveMaximum": _is_number,
    "exclusiveMinimum": _is_number,
    "maxContains": _is_size,
    "maxItems": _is_size,
    "maxLength": _is_size,
    "maxProperties": _is_size,
    "maximum": _is_number,
    "minContains": _is_size,
    "minItems": _is_size,
    "minLength": _is_size,
    "minProperties": _is_size,
    "minimum": _is_number,
    "multipleOf": _is_divisor,
    "pattern": _is_text,
    "required": _are_names,
    "type": _are_types,
    "uniqueItems": _is_boolean,
}
_MEMBERS: dict[str, _Members] = {
    "$defs": _by_name,
    "additionalProperties": _one,
    "allOf": _some,
    "anyOf": _some,
    "contains": _one,
    "definitions": _by_name,
    "dependencies": _by_name_or_names,
    "dependentSchemas": _by_name,
    "else": _one,
    "if": _one,
    "items": _one,
    "not": _one,
    "oneOf": _some,
    "patternProperties": _by_name,
    "prefixItems": _some,
    "properties": _by_name,
    "propertyNames": _one,
    "then": _one,
    "unevaluatedItems": _one,
    "unevaluatedProperties": _one,
}
_LATEST = _Table(_CHECKS, _MEMBERS)
_2019_09 = _Table(
    {**_CHECKS, "$anchor": _is_like("[A-Za-z][-A-Za-z0-9.:_]*"), "$recursiveAnchor": _is_boolean},
    {**_MEMBERS, "additionalItems": _one, "items": _one_or_some},
)
# A fragment is an anchor here.
_DRAFT_07 = _Table({**_2019_09.checks, "$id": _is_text}, _2019_09.members)
_DRAFT_04 = _Table(
    {**_DRAFT_07.checks, "id": _is_text, "exclusiveMaximum": _is_boolean, "exclusiveMinimum": _is_boolean},
    _DRAFT_07.members,
)
_TABLES: dict[Dialect, _Table] = {
    DRAFT_04: _DRAFT_04,
    DRAFT_06: _DRAFT_07,
    DRAFT_07: _DRAFT_07,
    DRAFT_2019_09: _2019_09,
    LATEST: _LATEST,
}
