"""Schemas and answers, each of which would once have stopped a process, or would stop a careless one.

Each is at most as long as a request may hold one, 64 KiB, and tells what it aims at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from sidecar.responses.json_schema import MAX_LEVELS

Schema = dict[str, Any]
ROWS = json.dumps([{"a": 1, "kind": "k19"}] * 2000)
LETTERS = "a" * 40 + "!"
STRING: Schema = {"type": "string"}


def an_object(**members: Any) -> Schema:
    return {"type": "object", **members}


def properties(schemas: Iterable[Any]) -> Schema:
    return an_object(properties={f"p{index}": schema for index, schema in enumerate(schemas)})


def named_patterns(count: int, pattern: Callable[[int], str]) -> Schema:
    return an_object(patternProperties={pattern(index): {"type": "integer"} for index in range(count)})


def chain(length: int, link: Callable[[Schema], Schema]) -> Schema:
    """Definitions each of which refers to the next one in the way that ``link`` says."""
    links = {f"d{index}": link({"$ref": f"#/$defs/d{index + 1}"}) for index in range(length)}
    return properties([{"$ref": "#/$defs/d0"}]) | {"$defs": {**links, f"d{length}": STRING}}


def doubling(levels: int, keyword: str) -> Schema:
    return chain(levels, lambda reference: {keyword: [reference, reference]})


def cycles(first: int, second: int) -> Schema:
    """Two recursions of different lengths that one value has to fit."""
    links = {
        f"{name}{index}": an_object(properties={"p": {"$ref": f"#/$defs/{name}{(index + 1) % length}"}})
        for name, length in (("a", first), ("b", second))
        for index in range(length)
    }
    return properties([{"allOf": [{"$ref": "#/$defs/a0"}, {"$ref": "#/$defs/b0"}]}]) | {"$defs": links}


def nested(levels: int, wrap: Callable[[Any], Any]) -> Any:
    schema: Any = {}
    for _ in range(levels):
        schema = wrap(schema)
    return schema


def alternatives(lists: int, length: int) -> Schema:
    """Several lists of alternatives that one value has to fit at once."""
    members = [[properties([STRING] * (list_ * length + index)) for index in range(length)] for list_ in range(lists)]
    return {"allOf": [{"anyOf": some} for some in members]}


HOSTILE: dict[str, tuple[Schema, str]] = {
    "a name against a pattern that backtracks": (
        an_object(
            properties={LETTERS: {"const": 1}},
            required=[LETTERS],
            patternProperties={"^(a+)+$": {"type": "integer"}},
            additionalProperties=False,
        ),
        json.dumps({LETTERS: 1}),
    ),
    "a text against a pattern that backtracks": (
        {"type": "string", "pattern": "^(a+)+$"},
        json.dumps("a" * 5000 + "!"),
    ),
    "a pattern with exponentially many states": (
        {"type": "string", "pattern": "^[01]*1[01]{40}$"},
        json.dumps("".join(f"{number:b}" for number in range(5000))),
    ),
    "a pattern that repeats repetitions": (
        {"type": "string", "pattern": "^((a{1,100}b?){1,100}c?){1,100}$"},
        json.dumps("aab" * 5000),
    ),
    "a pattern that repeats often": ({"type": "string", "pattern": "^a{1,100000}$"}, json.dumps("a" * 90_000)),
    "a pattern of many words": ({"type": "string", "pattern": "|".join(f"w{n}.*x" for n in range(6500))}, '"w1"'),
    "a pattern of large classes": ({"type": "string", "pattern": r"\p{L}?" * 5000}, json.dumps("é" * 5000)),
    "a pattern nested deeply": ({"type": "string", "pattern": "(" * 20_000 + ")" * 20_000}, '""'),
    "many patterns": (properties({"type": "string", "pattern": rf"^\p{{L}}{n}"} for n in range(1200)), "{}"),
    "many patterns for names": (named_patterns(1500, "^a{}$".format), '{"a1": 1}'),
    "patterns for names that are hard to tell apart": (
        named_patterns(40, lambda index: f"^[ab]*a[ab]{{20}}x{index}$"),
        "{}",
    ),
    "objects each with patterns for names": (
        properties(named_patterns(40, lambda index: f"^[ab]*a[ab]{{20}}x{index}$") for _ in range(38)),
        "{}",
    ),
    "patterns for names, and names": (
        named_patterns(30, "^({}|w)x$".format) | properties([{}] * 3000),
        json.dumps({f"p{n}": 1 for n in range(3000)}),
    ),
    "patterns that one text has to match": ({"allOf": [{"pattern": f"a{n}"} for n in range(100)]}, '"a1"'),
    "patterns that meet through references": (chain(64, lambda reference: {**reference, "pattern": "a+b"}), "{}"),
    "patterns that meet in alternatives": (
        {"allOf": [{"anyOf": [{"pattern": f"x{n}y{m}"} for m in range(20)]} for n in range(4)]},
        '"x"',
    ),
    "a pattern and many constants": ({"pattern": "v.*9$", "enum": [f"v{n}" for n in range(5000)]}, '"v9"'),
    "alternatives of alternatives": (alternatives(12, 2), "{}"),
    "more of the smallest schemas than are taken": ({"anyOf": [{}] * 21_000}, "{}"),
    "as many of the smallest schemas as are taken": ({"anyOf": [{}] * 4_999}, "{}"),
    "alternatives of the smallest schemas": ({"anyOf": [{"anyOf": [{}, {"anyOf": [{}]}]}] * 1_200}, "{}"),
    "many alternatives": ({"anyOf": [properties([{"const": n}]) for n in range(1000)]}, '{"p0": 2000}'),
    "rows of alternatives": (
        {
            "type": "array",
            "items": {
                "anyOf": [
                    an_object(properties={"a": {"type": "integer"}, "kind": {"const": f"k{n}"}}, required=["a", "kind"])
                    for n in range(20)
                ]
            },
        },
        ROWS,
    ),
    **{f"references that double in {keyword}": (doubling(200, keyword), '{"p0": 1}') for keyword in ("allOf", "anyOf")},
    "references that double, and more": (
        chain(150, lambda reference: {"allOf": [reference, reference], "required": ["a"]}),
        '{"p0": {}}',
    ),
    **{
        f"a chain of references in {name}": (chain(950, link), '{"p0": 1}')
        for name, link in {
            "nothing": lambda reference: reference,
            "allOf": lambda reference: {"allOf": [reference]},
            "anyOf": lambda reference: {"anyOf": [reference, {}]},
            "items": lambda reference: {"type": "array", "items": reference},
            "properties": lambda reference: an_object(properties={"p": reference}),
            "additionalProperties": lambda reference: {"additionalProperties": reference},
        }.items()
    },
    "recursions of different lengths": (cycles(97, 101), '{"p0": {"p": {"p": {}}}}'),
    "a reference to itself": ({"$ref": "#"}, "1"),
    "references to each other": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        "1",
    ),
    "anchors with long names": (
        properties([{"$ref": "#a"}] * 1500) | {"$defs": {"é" * 10_000: {"$anchor": "a"}}},
        "{}",
    ),
    "references to what is no place of a schema": (
        {**properties({"$ref": "#/x" + "/x" * (n % 20)} for n in range(1000)), "x": nested(20, lambda it: {"x": it})},
        "{}",
    ),
    "values that repeat": ({"type": "array", "uniqueItems": True}, json.dumps(list(range(100_000)))),
    "constants that collide": (
        {"enum": [n * (2**61 - 1) for n in range(1, 2500)]},
        json.dumps([(2**61 - 1) * n for n in range(2500)]),
    ),
    "large constants": ({"const": [[n] for n in range(8000)]}, json.dumps([[n] for n in range(8000)])),
    "a multiple of little": ({"multipleOf": 1e-300}, "9" * 4000),
    "large numbers": ({"minimum": 1e308, "multipleOf": 10**18}, "9" * 4000),
    "ranges of numbers": (
        properties({"type": "number", "minimum": n + 0.1234567890123, "maximum": 1e17 + n} for n in range(750)),
        "{}",
    ),
    "many names": (properties([STRING] * 2500), json.dumps({f"p{n}": "" for n in range(2500)})),
    "many names that are required": (an_object(required=[f"p{n}" for n in range(6000)]), "{}"),
    "lists of lists of lists": (
        nested(3, lambda it: {"type": "array", "minItems": 10**6, "maxItems": 10**9, "items": it}),
        "[]",
    ),
    "deep schemas": (
        nested((MAX_LEVELS - 2) // 2, lambda it: an_object(properties={"p": it})),
        '{"p":' * 900 + "1" + "}" * 900,
    ),
    "deep answers": (an_object(additionalProperties={"$ref": "#"}), '{"p":' * 900 + "{}" + "}" * 900),
    "answers too deep to read": ({"items": {"$ref": "#"}}, "[" * 100_000 + "]" * 100_000),
}


def size(schema: Schema) -> int:
    """The bytes of ``schema`` as a request's limit counts them."""
    return len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())
