"""JSON of bare values: chosen by the types that a schema allows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.generation.argument_types import json_of, types_of

ALL = {"null", "boolean", "number", "string", "array", "object"}


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": "integer"}, {"number"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, {"number", "null"}),
        ({"oneOf": [{"type": "array"}, {"$ref": "#/$defs/text"}]}, {"array", "string"}),
        ({"allOf": [{"$ref": "#/$defs/text"}]}, {"string"}),
        ({"$ref": "#/$defs/a~1b"}, {"boolean"}),
        ({"$ref": "#/$defs/loop"}, {"object"}),
        ({"$ref": "#/$defs/nothing but itself"}, ALL),
        ({"$ref": "#/$defs/missing"}, ALL),
        ({"$ref": "https://example.com/schema"}, ALL),
        ({"enum": ["a", 1, None]}, {"string", "number", "null"}),
        ({"const": True}, {"boolean"}),
        ({"description": "anything"}, ALL),
        (True, ALL),
    ],
)
def test_types_of_a_parameter(schema: Any, types: set[str]) -> None:
    definitions = {
        "text": {"type": "string"},
        "a/b": {"type": "boolean"},
        "loop": {"anyOf": [{"$ref": "#/$defs/loop"}, {"type": "object"}]},
        "nothing but itself": {"$ref": "#/$defs/nothing but itself"},
    }
    assert types_of({"properties": {"p": schema}, "$defs": definitions}, "p") == types


STRING: dict[str, Any] = {"type": "string"}
MEMBER = {"properties": {"p": STRING}}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/arguments"},
        {"$ref": "#/$defs/list/1"},
        {"allOf": [{"properties": {"q": {"type": "number"}}}, {"$ref": "#/$defs/arguments"}]},
        {"anyOf": [{"properties": {"q": {"type": "number"}}}, MEMBER]},
        {"oneOf": [MEMBER, {"properties": {"p": {"enum": ["a", "b"]}}}]},
        {"additionalProperties": STRING},
        {"properties": {"q": {}}, "additionalProperties": {"allOf": [{"$ref": "#/$defs/text"}, {"minLength": 1}]}},
        {
            "patternProperties": {"^q": {"type": "number"}, "^[a-z]{1,3}$": STRING},
            "additionalProperties": {"type": "null"},
        },
        {"properties": {"p": {"anyOf": [{"$ref": "#/$defs/text"}, {"const": "x"}]}}},
        {"properties": {"p": {"type": ["string", "number"], "enum": ["1", "2"]}}},
    ],
)
def test_the_schema_that_applies_decides(schema: dict[str, Any]) -> None:
    definitions = {"text": STRING, "arguments": MEMBER, "list": [{}, MEMBER]}
    assert types_of({**schema, "$defs": definitions}, "p") == {"string"}


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(", "^a*b*c*p", "p|q", "p" * 100])
def test_a_pattern_that_may_be_dear_says_nothing(pattern: str) -> None:
    assert types_of({"patternProperties": {pattern: STRING}, "additionalProperties": {"type": "null"}}, "p") == ALL


@pytest.mark.parametrize("schema", [{}, {"properties": None}, {"properties": {"other": {"type": "string"}}}])
def test_an_undeclared_parameter_may_be_anything(schema: dict[str, Any]) -> None:
    assert types_of(schema, "p") == ALL


def test_a_schema_that_refers_to_itself_many_times_is_read_once() -> None:
    definitions = {str(i): {"anyOf": [{"$ref": f"#/$defs/{j}"} for j in range(40)]} for i in range(40)}
    assert types_of({"properties": {"p": {"$ref": "#/$defs/0"}}, "$defs": definitions}, "p") == ALL


def test_a_long_chain_of_references_is_not_followed_to_its_end() -> None:
    definitions: dict[str, Any] = {str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(20_000)}
    assert types_of({"properties": {"p": {"$ref": "#/$defs/0"}}, "$defs": definitions}, "p") == ALL


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("5", {"number"}, "5"),
        ("5", {"string"}, '"5"'),
        ("5", {"string", "number"}, "5"),
        ("5", {"boolean"}, '"5"'),
        ("1.50", {"number"}, "1.50"),
        (" true ", {"boolean"}, "true"),
        ("True", {"boolean"}, "true"),
        ("None", {"string", "null"}, "null"),
        ("None", {"string"}, '"None"'),
        ('{"a": [1]}', {"object"}, '{"a": [1]}'),
        ("{'a': True, 'b': None}", {"object"}, '{"a": true, "b": null}'),
        ("['x','y',]", {"array", "null"}, '["x","y"]'),
        ("{'a': 1}", ALL, "\"{'a': 1}\""),
        ('"42"', {"number"}, "42"),
        ("'42'", {"number"}, "42"),
        ('"True"', {"boolean"}, "true"),
        ("1_000", {"number"}, "1000"),
        ("90210", {"string", "null"}, '"90210"'),
        ('"quoted"', {"string"}, '"\\"quoted\\""'),
        ('"quoted"', ALL, '"quoted"'),
        ("NaN", {"number"}, '"NaN"'),
        ("", {"number"}, '""'),
        ("[" * 100_000, {"array"}, '"' + "[" * 100_000 + '"'),
    ],
)
def test_json_of_a_value(text: str, types: set[str], expected: str) -> None:
    assert json_of(text, frozenset(types)) == expected


@given(st.text() | st.integers().map(str), st.sets(st.sampled_from(sorted(ALL))))
def test_what_comes_out_is_json(text: str, types: set[str]) -> None:
    json.loads(json_of(text, frozenset(types)))
