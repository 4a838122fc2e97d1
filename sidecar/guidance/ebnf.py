"""EBNF grammars of JSON that fits a schema, and of text in which such JSON stands after a marker.

The notation is that which XGrammar and llama.cpp share (GBNF). What it cannot say of a schema, such as a pattern or the
bounds of a number, makes the schema inexpressible; properties come in the order of the schema, and where it leaves
further properties open there are none, so that every text of the grammar fits the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import unquote

from sidecar.guidance.positions import DEFINITIONS
from sidecar.guidance.schemas import Schema

_JSON = {
    "space": '" "?',
    "hex": "[0-9a-fA-F]",
    "char": r'[^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" hex hex hex hex)',
    "string": r'"\"" char* "\""',
    # Unbounded, a small model may write digits without end.
    "integer": '"-"? ("0" | [1-9] [0-9]{0,15})',
    "number": 'integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "array": '"[" space (value (space "," space value)*)? space "]"',
    "member": 'string ":" space value',
    "object": '"{" space (member (space "," space member)*)? space "}"',
    "value": "object | array | string | number | boolean | null",
}
_ALIASES = re.compile(r"\w+( \| \w+)*")
_COMMA = '"," space'
_KEYWORDS = {
    "string": {"minLength", "maxLength"},
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "additionalProperties"},
}
# Engines write repetitions out.
_MOST_REPETITIONS = 500
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")


class InexpressibleError(ValueError):
    """A schema says what a grammar cannot."""


def literal(text: str) -> str:
    """``text`` as a terminal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


class Grammar:
    """A grammar as it grows; its first rule is ``root``."""

    def __init__(self) -> None:
        self._rules = dict(_JSON)
        self._schemas: dict[str, str] = {}
        self._document: Schema = {}

    def document(self) -> str:
        """The grammar as text."""
        return "".join(f"{name} ::= {rule}\n" for name, rule in self._rules.items())

    def json(self, schema: Schema) -> str:
        """The name of a rule for JSON that fits the self-contained ``schema``.

        Raises:
            InexpressibleError: there is no such rule.
        """
        self._document, self._schemas = schema, {}
        first = len(self._rules)
        try:
            name = self._reference("#")
            # Rules of other schemas neither lead here nor are led to.
            _check_recursion({new: self._rules[new] for new in self._names_from(first)})
        except (InexpressibleError, RecursionError) as error:
            for new in self._names_from(first):
                del self._rules[new]
            raise InexpressibleError from error
        return name

    def _names_from(self, first: int) -> list[str]:
        """The names of the rules from the number ``first`` on."""
        return [_name(number) for number in range(first, len(self._rules))]

    def text_until(self, trigger: str, calls: Sequence[str]) -> None:
        """Let ``root`` be text that does not hold ``trigger``, but before one of ``calls``, as often as one likes.

        The rules are the states of the automaton that looks for ``trigger``: how much of it the text ends with.
        """
        self._rules["root"] = "text0"
        self._rules["call"] = " | ".join(calls)
        for state in range(len(trigger)):
            onward = {letter: _longest_end(trigger[:state] + letter, trigger) for letter in sorted(set(trigger))}
            onward = {letter: following for letter, following in onward.items() if following}
            ways = ['""', f"[^{''.join(map(_in_class, onward))}] text0"]
            for letter, following in onward.items():
                next_rules = "call text0" if following == len(trigger) else f"text{following}"
                ways.append(f"{literal(letter)} {next_rules}")
            self._rules[f"text{state}"] = " | ".join(ways)

    def _reference(self, pointer: str) -> str:
        """The rule for the schema at ``pointer``; it may refer to itself."""
        if pointer not in self._schemas:
            name = self._schemas[pointer] = self._new_name()
            self._rules[name] = self._schema(self._at(pointer))
        return self._schemas[pointer]

    def _at(self, pointer: str) -> Any:
        found: Any = self._document
        for step in pointer.split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            found = found[int(name)] if isinstance(found, list) else found[name]
        return found

    def _new_name(self) -> str:
        name = _name(len(self._rules))
        self._rules[name] = ""
        return name

    def _rule(self, text: str) -> str:
        name = self._new_name()
        self._rules[name] = text
        return name

    def _schema(self, schema: Any) -> str:
        if schema is True:
            return "value"
        if schema is False:
            raise InexpressibleError
        said = schema.keys() - DEFINITIONS
        if "$ref" in said:
            return self._alone(said - {"type"}, "$ref", lambda: self._reference(schema["$ref"]))
        if "const" in said:
            return self._alone(said - {"type"}, "const", lambda: _constant(schema["const"]))
        if "enum" in said:
            return self._alone(said - {"type"}, "enum", lambda: " | ".join(map(_constant, schema["enum"])))
        if "anyOf" in said:
            return self._alone(said, "anyOf", lambda: " | ".join(map(self._part, schema["anyOf"])))
        types = schema.get("type", _implied_type(said))
        types = [types] if isinstance(types, str) else types
        if said - {"type"} - set().union(*(_KEYWORDS.get(kind, set()) for kind in types)):
            raise InexpressibleError
        return " | ".join(self._typed(kind, schema) for kind in types)

    def _alone(self, said: set[str], keyword: str, rule: Callable[[], str]) -> str:
        if said != {keyword}:
            raise InexpressibleError
        return rule()

    def _part(self, schema: Any) -> str:
        return self._rule(self._schema(schema))

    def _typed(self, kind: str, schema: Schema) -> str:
        if kind == "object":
            return self._object(schema)
        if kind == "array":
            return self._array(schema)
        if kind == "string" and schema.keys() & _KEYWORDS["string"]:
            return rf'"\"" char{_times(schema.get("minLength", 0), schema.get("maxLength"))} "\""'
        return kind

    def _array(self, schema: Schema) -> str:
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        item = self._part(schema.get("items", True))
        if most == 0:
            return '"[" space "]"'
        more = _times(max(least - 1, 0), None if most is None else most - 1)
        items = f"{item} (space {_COMMA} {item}){more}"
        return f'"[" space {items} space "]"' if least else f'"[" space ({items})? space "]"'

    def _object(self, schema: Schema) -> str:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not set(required) <= properties.keys():
            raise InexpressibleError
        if not properties:
            return self._map(schema.get("additionalProperties", True))
        return f'"{{" space {self._members(properties, frozenset(required))} space "}}"'

    def _map(self, values: Any) -> str:
        if values is False:
            return '"{" space "}"'
        member = f'string ":" space {self._part(values)}'
        return f'"{{" space ({member} (space {_COMMA} {member})*)? space "}}"'

    def _members(self, properties: Schema, required: frozenset[str]) -> str:
        """Properties in their order, from the last to the first: as if first, and as if others stood before."""
        first = after = '""'
        for name, schema in reversed(properties.items()):
            member = f'{literal(json.dumps(name, ensure_ascii=False))} ":" space {self._part(schema)}'
            as_first, as_next = f"{member} {after}", f"space {_COMMA} {member} {after}"
            if name not in required:
                as_first, as_next = f"{as_first} | {first}", f"{as_next} | {after}"
            first, after = self._rule(as_first), self._rule(as_next)
        return first


def _name(number: int) -> str:
    return f"r{number}"


def _check_recursion(rules: Mapping[str, str]) -> None:
    """Only rules that are nothing but other rules can lead to themselves before a letter is read; engines loop then."""
    aliases = {name: rule.split(" | ") for name, rule in rules.items() if _ALIASES.fullmatch(rule)}
    try:
        TopologicalSorter(aliases).prepare()
    except CycleError as error:
        raise InexpressibleError from error


def _implied_type(said: set[str]) -> str | Sequence[str]:
    """The type that the keywords of a schema without one are about; a grammar may be narrower than its schema."""
    return next((kind for kind, keywords in _KEYWORDS.items() if said & keywords), _TYPES)


def _constant(value: Any) -> str:
    return literal(json.dumps(value, ensure_ascii=False))


def _times(least: int, most: int | None) -> str:
    if max(least, most or 0) > _MOST_REPETITIONS:
        raise InexpressibleError
    # JSON may write a whole number as 2.0.
    return f"{{{int(least)},}}" if most is None else f"{{{int(least)},{int(most)}}}"


def _in_class(letter: str) -> str:
    return "\\" + letter if letter in "\\]^-" else letter


def _longest_end(text: str, word: str) -> int:
    """How many letters of ``word`` ``text`` ends with."""
    return next(length for length in range(len(text), -1, -1) if text.endswith(word[:length]) and length <= len(word))
