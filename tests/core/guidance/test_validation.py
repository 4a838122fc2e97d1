"""An answer is checked as a well-known validator checks it, and the check comes to an end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.guidance.validation import MOST_STEPS, Check, UndecidedError, fits
from tests.core.guidance.validators import validator

SCALARS: list[Any] = [None, True, False, 0, 1, 1.0, 2, -1, 0.5, "", "a", "ab", "b", "é", 10**20, 1e20]
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(SCALARS),
    lambda inside: st.one_of(
        st.lists(inside, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "ab", "c/~"]), inside, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=2, unique=True)
SIZES = st.sampled_from([0, 1, 2, 2.0, 3])
NUMBERS = st.sampled_from([-1, 0, 0.5, 1, 2, 1e20])
TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]
REFERENCES = st.sampled_from(["#/$defs/x", "#/$defs/c~1~0%C3%A9", "#/$defs/l/anyOf/0"])
PATTERNS = ["^a", "b$", "a|é"]


def _schemas(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members: dict[str, st.SearchStrategy[Any]] = {
        "$ref": REFERENCES,
        "const": VALUES,
        "enum": st.lists(VALUES, max_size=3),
        "type": st.one_of(
            st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
        ),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "pattern": st.sampled_from(PATTERNS),
        "required": NAMES,
        "uniqueItems": st.booleans(),
        "dependentRequired": st.dictionaries(st.sampled_from("ab"), NAMES, max_size=2),
        "properties": st.dictionaries(st.sampled_from(["a", "b", "ab"]), inside, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inside, max_size=2),
        "dependentSchemas": st.dictionaries(st.sampled_from("ab"), inside, max_size=2),
    }
    single = ["additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"]
    members |= dict.fromkeys(single, inside)
    members |= dict.fromkeys(["allOf", "anyOf", "oneOf", "prefixItems"], st.lists(inside, min_size=1, max_size=3))
    sizes = ["Contains", "Items", "Length", "Properties"]
    members |= dict.fromkeys([bound + kind for bound in ("min", "max") for kind in sizes], SIZES)
    members |= dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], NUMBERS)
    return st.lists(st.sampled_from(sorted(members)), max_size=4, unique=True).flatmap(
        lambda keywords: st.fixed_dictionaries({keyword: members[keyword] for keyword in keywords})
    )


SCHEMAS = st.recursive(st.one_of(st.booleans(), _schemas(st.booleans())), _schemas, max_leaves=6)


@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=6))
def test_it_decides_as_a_well_known_validator_does(schema: Any, values: list[Any]) -> None:
    listed = {"anyOf": [{"type": "string", "minLength": 2}, {"items": {"$ref": "#/$defs/x"}}]}
    document = {"allOf": [schema], "$defs": {"x": {"type": ["string", "null"]}, "c/~é": listed, "l": listed}}
    expected = validator(document)
    for value in values:
        assert fits(json.dumps(value), document) is expected.is_valid(value)


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"multipleOf": 0.1}, "0.3", True),
        ({"multipleOf": 0.1}, "0.35", False),
        ({"multipleOf": 1e-300}, "1e300", True),
        ({"const": 10**20}, "1e20", True),
        ({"uniqueItems": True}, '[1, true, 1.5, [1], [true], {}, null, 0, false, "1"]', True),
        ({"uniqueItems": True}, '[{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]', False),
        ({"unevaluatedProperties": False}, "{}", None),
        ({}, "9" * 5000, False),
        ({}, "NaN", False),
        ({}, "[" * 100_000 + "]" * 100_000, None),
        ({"items": {"$ref": "#"}}, "[" * 900 + "]" * 900, None),
        ({"$ref": "#"}, "1", None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_not_plain(schema: Any, text: str, expected: bool | None) -> None:
    assert fits(text, schema) is expected


def doubling(levels: int, keyword: str = "anyOf") -> dict[str, Any]:
    """Each definition refers to the next one twice."""
    twice = {f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**twice, f"d{levels}": {"type": "string"}}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_references_that_double_are_followed_once(keyword: str) -> None:
    check = Check(schema := doubling(100, keyword))
    check.admits(schema, 1)
    assert check.steps > MOST_STEPS - 2000


def test_a_check_ends_with_its_steps() -> None:
    row = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"const": "x"}}, "required": ["a", "b"]}
    schema = {"type": "array", "items": {"anyOf": [{"properties": {"b": {"const": 1}}}] * 20 + [row]}}
    rows = [{"a": 1, "b": "x"}] * 2000
    assert fits(json.dumps(rows[:100]), schema) is True
    assert fits(json.dumps(rows), schema) is None
    with pytest.raises(UndecidedError):
        Check(schema, steps=1000).admits(schema, rows)


def test_some_thousand_plain_objects_are_checked() -> None:
    members = {"id": {"type": "integer"}, "name": {"type": "string"}, "kind": {"enum": ["a", "b"]}}
    row = {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}
    rows = [{"id": 1, "name": "n", "kind": "b"}] * 2000
    assert fits(json.dumps(rows), {"type": "array", "items": row}) is True
    assert fits(json.dumps([*rows, {}]), {"type": "array", "items": row}) is False
