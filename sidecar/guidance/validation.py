"""Whether a value fits a self-contained schema, within a number of steps.

A step takes about a microsecond. However a client's schema and a model's answer conspire, by alternatives, references
that double, patterns or recursion, a check ends; then it says that it could not tell. Source: JSON Schema 2020-12,
core, section 10, and validation, section 6.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NoReturn
from urllib.parse import unquote

from sidecar.guidance.patterns import matches

MOST_STEPS = 50_000
"""The steps of a check: enough for some thousand objects of an ordinary schema."""

_Keyword = Callable[["Check", Any, Any, Mapping[str, Any]], bool]
"""Whether a value is what a keyword says, given the check, the keyword's value, the value, and the schema around."""

# The first use of a pattern compiles it.
_PATTERN_STEPS = 500
# Larger integers are compared as text: sets of chosen ones would be slow.
_LARGE = 2**60


class UndecidedError(Exception):
    """A check has come to the end of its steps, or to what it cannot decide."""


def fits(text: str, schema: Mapping[str, Any]) -> bool | None:
    """Whether ``text`` is JSON that fits the self-contained ``schema``; ``None`` if that takes too long to tell."""
    try:
        return Check(schema).admits(schema, json.loads(text, parse_constant=_no_number))
    except ValueError:
        return False
    except (UndecidedError, RecursionError):
        return None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class Check:
    """One check: the steps that are left, and what has been found out."""

    def __init__(self, document: Mapping[str, Any], steps: int = MOST_STEPS) -> None:
        self._document = document
        self.steps = steps
        self._targets: dict[str, Any] = {}
        self._results: dict[tuple[str, int], bool] = {}
        self._patterns: set[str] = set()
        self._keys: dict[int, Any] = {}

    def admits(self, schema: Any, value: Any) -> bool:
        """Whether ``value`` fits ``schema``, a part of the document.

        Raises:
            UndecidedError: there are no steps left, or the schema says what is not decided here.
        """
        if not isinstance(schema, dict):
            return bool(schema)
        self.spend(1 + len(schema))
        for keyword, said in schema.items():
            check = _KEYWORDS.get(keyword)
            if check is not None and not check(self, said, value, schema):
                return False
        return True

    def spend(self, steps: int) -> None:
        """Count ``steps``.

        Raises:
            UndecidedError: there were fewer left.
        """
        self.steps -= steps
        if self.steps < 0:
            raise UndecidedError

    def admits_reference(self, reference: str, value: Any) -> bool:
        """Whether ``value`` fits the schema that ``reference`` points to. It is asked once of each value."""
        asked = reference, id(value)
        if asked not in self._results:
            self._results[asked] = self.admits(self._target(reference), value)
        return self._results[asked]

    def finds(self, pattern: str, text: str) -> bool:
        """Whether ``pattern`` is found in ``text``."""
        self.spend(len(text))
        if pattern not in self._patterns:
            self.spend(_PATTERN_STEPS + len(pattern))
            self._patterns.add(pattern)
        found = matches(pattern, text)
        if found is None:
            raise UndecidedError
        return found

    def key(self, value: Any) -> Any:
        """What values have in common that are the same to JSON: ``1`` and ``1.0``, but not ``1`` and ``true``."""
        self.spend(1)
        if isinstance(value, str) or value is None:
            return value
        if isinstance(value, bool):
            return bool, value
        if isinstance(value, list):
            return list, tuple(map(self.key, value))
        if isinstance(value, dict):
            return dict, frozenset((name, self.key(member)) for name, member in value.items())
        whole = int(value) if isinstance(value, int) or value.is_integer() else None
        return value if whole is None or abs(whole) < _LARGE else (int, hex(whole))

    def keys_of(self, values: list[Any]) -> frozenset[Any]:
        """The keys of ``values``, a part of the document."""
        if id(values) not in self._keys:
            self._keys[id(values)] = frozenset(map(self.key, values))
        found: frozenset[Any] = self._keys[id(values)]
        return found

    def _target(self, reference: str) -> Any:
        if reference not in self._targets:
            target: Any = self._document
            for step in unquote(reference).split("/")[1:]:
                self.spend(1)
                name = step.replace("~1", "/").replace("~0", "~")
                target = target[int(name)] if isinstance(target, list) else target[name]
            self._targets[reference] = target
        return self._targets[reference]


def _is_type(name: str, value: Any) -> bool:
    match name:
        case "string":
            return isinstance(value, str)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_number(value) and (isinstance(value, int) or value.is_integer())
    return _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _type(_: Check, said: Any, value: Any, __: Any) -> bool:
    return _is_type(said, value) if isinstance(said, str) else any(_is_type(name, value) for name in said)


def _const(check: Check, said: Any, value: Any, _: Any) -> bool:
    return bool(check.key(value) == check.key(said))


def _enum(check: Check, said: Any, value: Any, _: Any) -> bool:
    return check.key(value) in check.keys_of(said)


def _ref(check: Check, said: Any, value: Any, _: Any) -> bool:
    return check.admits_reference(said, value)


def _all_of(check: Check, said: Any, value: Any, _: Any) -> bool:
    return all(check.admits(schema, value) for schema in said)


def _any_of(check: Check, said: Any, value: Any, _: Any) -> bool:
    return any(check.admits(schema, value) for schema in said)


def _one_of(check: Check, said: Any, value: Any, _: Any) -> bool:
    return sum(check.admits(schema, value) for schema in said) == 1


def _not(check: Check, said: Any, value: Any, _: Any) -> bool:
    return not check.admits(said, value)


def _if(check: Check, said: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    return check.admits(schema.get("then" if check.admits(said, value) else "else", True), value)


def _properties(check: Check, said: Any, value: Any, _: Any) -> bool:
    if not isinstance(value, dict):
        return True
    names = said if len(said) < len(value) else value
    check.spend(len(names))
    return all(check.admits(said[name], value[name]) for name in names if name in value and name in said)


def _pattern_properties(check: Check, said: Any, value: Any, _: Any) -> bool:
    return not isinstance(value, dict) or all(
        check.admits(schema, member)
        for pattern, schema in said.items()
        for name, member in value.items()
        if check.finds(pattern, name)
    )


def _additional_properties(check: Check, said: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    check.spend(len(value))
    return all(
        check.admits(said, member)
        for name, member in value.items()
        if name not in known and not any(check.finds(pattern, name) for pattern in patterns)
    )


def _property_names(check: Check, said: Any, value: Any, _: Any) -> bool:
    return not isinstance(value, dict) or all(check.admits(said, name) for name in value)


def _required(check: Check, said: Any, value: Any, _: Any) -> bool:
    return not isinstance(value, dict) or _are_there(check, said, value)


def _are_there(check: Check, names: list[str], value: Mapping[str, Any]) -> bool:
    check.spend(len(names) // 4)
    return all(name in value for name in names)


def _dependent_required(check: Check, said: Any, value: Any, _: Any) -> bool:
    check.spend(len(said))
    return not isinstance(value, dict) or all(
        _are_there(check, names, value) for name, names in said.items() if name in value
    )


def _dependent_schemas(check: Check, said: Any, value: Any, _: Any) -> bool:
    check.spend(len(said))
    return not isinstance(value, dict) or all(
        check.admits(schema, value) for name, schema in said.items() if name in value
    )


def _prefix_items(check: Check, said: Any, value: Any, _: Any) -> bool:
    return not isinstance(value, list) or all(map(check.admits, said, value))


def _items(check: Check, said: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    return not isinstance(value, list) or _all_admitted(check, said, value[len(schema.get("prefixItems", ())) :])


def _all_admitted(check: Check, schema: Any, values: list[Any]) -> bool:
    check.spend(len(values))
    return all(check.admits(schema, member) for member in values)


def _contains(check: Check, said: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, list):
        return True
    check.spend(len(value))
    found = sum(check.admits(said, member) for member in value)
    return bool(schema.get("minContains", 1) <= found <= schema.get("maxContains", len(value)))


def _unique_items(check: Check, said: Any, value: Any, _: Any) -> bool:
    return not said or not isinstance(value, list) or len(set(map(check.key, value))) == len(value)


def _pattern(check: Check, said: Any, value: Any, _: Any) -> bool:
    return not isinstance(value, str) or check.finds(said, value)


def _multiple_of(check: Check, said: Any, value: Any, _: Any) -> bool:
    if not _is_number(value):
        return True
    if isinstance(value, int) and isinstance(said, int):
        return value % said == 0
    check.spend(100)
    # By their digits: to JSON 0.3 is three times 0.1.
    return (Fraction(str(value)) / Fraction(str(said))).denominator == 1


def _undecided(*_: Any) -> bool:
    raise UndecidedError


def _number(compare: Callable[[Any, Any], bool]) -> _Keyword:
    return lambda _check, said, value, _schema: not _is_number(value) or compare(value, said)


def _size(kind: type[str] | type[list[Any]] | type[dict[str, Any]], compare: Callable[[Any, Any], bool]) -> _Keyword:
    return lambda _check, said, value, _schema: not isinstance(value, kind) or compare(len(value), said)


def _at_least(size: Any, said: Any) -> bool:
    return bool(size >= said)


def _at_most(size: Any, said: Any) -> bool:
    return bool(size <= said)


_KEYWORDS: dict[str, _Keyword] = {
    "$ref": _ref,
    "additionalProperties": _additional_properties,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "contains": _contains,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "enum": _enum,
    "exclusiveMaximum": _number(lambda value, said: bool(value < said)),
    "exclusiveMinimum": _number(lambda value, said: bool(value > said)),
    "if": _if,
    "items": _items,
    "maxItems": _size(list, _at_most),
    "maxLength": _size(str, _at_most),
    "maxProperties": _size(dict, _at_most),
    "maximum": _number(_at_most),
    "minItems": _size(list, _at_least),
    "minLength": _size(str, _at_least),
    "minProperties": _size(dict, _at_least),
    "minimum": _number(_at_least),
    "multipleOf": _multiple_of,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "prefixItems": _prefix_items,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "type": _type,
    # No engine guides by them, so that no answer has ever to keep to them.
    "unevaluatedItems": _undecided,
    "unevaluatedProperties": _undecided,
    "uniqueItems": _unique_items,
}
