"""A schema in its self-contained form means what the client's schema means, and its values are the client's."""

import json
from typing import Any

import pytest
from llguidance import LLMatcher

from sidecar.guidance.self_contained import UnresolvableError, self_contained
from sidecar.guidance.validation import fits
from tests.core.guidance.validators import validator

DRAFT_04 = "http://json-schema.org/draft-04/schema#"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
TRICKY = {"$ref": "#/x", "format": "y", "$id": "z", "properties": {"a": {"$schema": 1}}}

MEANINGS: list[tuple[str, dict[str, Any], list[Any], list[Any]]] = [
    ("pointer", {"$ref": "#/$defs/q", "$defs": {"q": {"type": "string"}}}, ["x"], [1]),
    ("pointer to nothing but true", {"$ref": "#/$defs/q", "$defs": {"q": True}}, ["x", 1], []),
    ("anchor", {"$ref": "#q", "$defs": {"a": {"$anchor": "q", "type": "string"}}}, ["x"], [1]),
    (
        "relative to the id",
        {"$id": "http://h/a/r", "items": {"$ref": "r#/$defs/q"}, "$defs": {"q": {"type": "string"}}},
        [["x"]],
        [[1]],
    ),
    (
        "a resource inside",
        {
            "$id": "http://h/a",
            "prefixItems": [{"$ref": "b"}, {"$ref": "/b#/$defs/n"}],
            "$defs": {
                "b": {"$id": "b", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "null"}}},
            },
        },
        [[[None], None]],
        [[[1], None], [[None], 1]],
    ),
    (
        "the document itself",
        {"properties": {"a": {"$ref": "#"}, "b": {"type": "null"}}},
        [{"a": {}}],
        [{"a": {"b": 1}}],
    ),
    ("a name that is quoted", {"$ref": "#/$defs/%C3%A9%20~1~0%25", "$defs": {"é /~%": {"type": "null"}}}, [None], [1]),
    (
        "draft-04 id",
        {
            "$schema": DRAFT_04,
            "id": "http://h/",
            "allOf": [{"$ref": "#q"}],
            "definitions": {"a": {"id": "#q", "type": "null"}},
        },
        [None],
        [1],
    ),
    (
        "draft-04 bounds",
        {"$schema": DRAFT_04, "minimum": 1, "exclusiveMinimum": True, "maximum": 3, "exclusiveMaximum": False},
        [2, 3],
        [1, 4],
    ),
    (
        "draft-07 siblings",
        {
            "$schema": DRAFT_07,
            "items": {"$ref": "#/definitions/n", "type": "string", "$id": "x"},
            "definitions": {"n": {"type": "null"}},
        },
        [[None]],
        [["x"]],
    ),
    (
        "draft-07 reference to a sibling",
        {
            "$schema": DRAFT_07,
            "allOf": [{"$ref": "#/allOf/0/items", "items": {"type": "null"}}],
            "properties": {"a": {"$ref": "#/properties/a/not/items/1", "not": {"items": [{}, {"type": "string"}]}}},
        },
        [None],
        [1, {"a": 1}],
    ),
    (
        "draft-07 root reference",
        {"$schema": DRAFT_07, "$ref": "#/definitions/n", "definitions": {"n": {"type": "null"}}},
        [None],
        [1],
    ),
    (
        "draft-07 tuples",
        {
            "$schema": DRAFT_07,
            "items": [{"type": "null"}, {"$ref": "#/items/0"}],
            "additionalItems": {"type": "string"},
        },
        [[None, None, "x"]],
        [[None, 1], [None, None, 1]],
    ),
    (
        "draft-07 dependencies",
        {"$schema": DRAFT_07, "dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        [{"a": 1, "b": 1}],
        [{"a": 1}, {"c": 1}],
    ),
    ("siblings", {"$ref": "#/$defs/q", "maxLength": 2, "$defs": {"q": {"type": "string"}}}, ["xx"], [1, "xxx"]),
    (
        "a definition elsewhere",
        {
            "$ref": "#/components/schemas/A",
            "components": {"schemas": {"A": {"items": {"$ref": "#/components/schemas/B"}}, "B": {"type": "null"}}},
        },
        [[None]],
        [[1]],
    ),
    ("const", {"const": TRICKY}, [TRICKY], [{}]),
    ("enum", {"enum": [TRICKY, 1]}, [TRICKY, 1], [{}]),
    ("default and examples", {"type": "object", "default": TRICKY, "examples": [TRICKY]}, [{}], [1]),
    (
        "members called like keywords",
        {
            "properties": {
                "$ref": {"type": "string"},
                "format": {"type": "null"},
                "const": {"$ref": "#/properties/format"},
            }
        },
        [{"$ref": "x", "const": None}],
        [{"$ref": 1}, {"const": 1}],
    ),
    ("definitions called like keywords", {"$ref": "#/$defs/const", "$defs": {"const": {"type": "null"}}}, [None], [1]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), [row[1:] for row in MEANINGS], ids=[row[0] for row in MEANINGS])
def test_it_means_the_same_as_it_is_and_inside_another(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    before = json.dumps(schema)
    alone = self_contained(schema)
    inside = {"properties": {"a/b": {"anyOf": [False, self_contained(schema, ("properties", "a/b", "anyOf", "1"))]}}}
    original = validator(schema)
    for values, expected in ((good, True), (bad, False)):
        for value in values:
            assert original.is_valid(value) is expected
            assert fits(json.dumps(value), alone) is expected
            assert fits(json.dumps({"a/b": value}), inside) is expected
    assert json.dumps(schema) == before


@pytest.mark.parametrize("schema", [row[1] for row in MEANINGS if "dependencies" not in row[0]], ids=str)
def test_the_engine_takes_what_it_takes_alone_and_inside_another(schema: dict[str, Any]) -> None:
    inside = {
        "type": "object",
        "properties": {"a": self_contained(schema, ("properties", "a"))},
        "required": ["a"],
        "additionalProperties": False,
    }
    for document in (self_contained(schema), inside):
        assert LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(json.dumps(document))) == ""


@pytest.mark.parametrize("schema", [row[1] for row in MEANINGS], ids=[row[0] for row in MEANINGS])
def test_a_self_contained_schema_stays_as_it_is(schema: dict[str, Any]) -> None:
    once = self_contained(schema)
    assert self_contained(once) == once


def test_values_are_the_client_s_own_objects() -> None:
    schema = {"properties": {"a": {"const": TRICKY}}}
    assert self_contained(schema)["properties"]["a"]["const"] is TRICKY


def test_only_what_constrains_a_value_is_left() -> None:
    schema = {"title": "T", "type": "string", "format": "date", "$comment": "c", "x-engine": {"lenient": True}}
    assert self_contained(schema) == {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://h/other"},
        {"$ref": "other.json"},
        {"$ref": "#/nowhere"},
        {"$ref": "#nowhere"},
        {"$ref": "#/items/7", "items": {}},
        {"$ref": "#/title", "title": "t"},
        {"$ref": "#/default/a", "default": {"a": {"type": "string"}}},
        {"$ref": "#/const", "const": {"type": "string"}},
        {"$ref": "http://["},
        {"$dynamicRef": "#x", "$dynamicAnchor": "x"},
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "items": {"$recursiveRef": "#"}},
    ],
    ids=str,
)
def test_a_reference_that_cannot_be_a_pointer_is_told(schema: dict[str, Any]) -> None:
    with pytest.raises(UnresolvableError):
        self_contained(schema)


def test_every_schema_of_the_suite_is_one() -> None:
    for _, schema, _, _ in MEANINGS:
        validator(schema).check_schema(schema)
