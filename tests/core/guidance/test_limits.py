"""A schema whose grammar would take too long to make is refused in words, and what tools use is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.guidance.demands import MOST_GUIDING_TEXT, MOST_TEXT, document
from sidecar.guidance.limits import MOST_LEVELS, MOST_PATTERNS, MOST_SCHEMAS, excess
from sidecar.responses.errors import ApiError
from tests.core.guidance.requests import checked_guidance, json_schema, request, tool

REFERENCE = {"$ref": "#/$defs/x"}


def patterns(count: int) -> dict[str, Any]:
    return {"allOf": [{"pattern": f"a{index}"} for index in range(count)]}


def names(count: int) -> dict[str, Any]:
    return {"patternProperties": {f"^a{index}$": {} for index in range(count)}}


def choices(count: int) -> dict[str, Any]:
    return {"anyOf": [{"required": [f"a{index}"]} for index in range(count)]}


def chain(length: int) -> dict[str, Any]:
    links = {f"d{index}": {"items": {"$ref": f"#/$defs/d{index + 1}"}} for index in range(length)}
    return {"items": {"$ref": "#/$defs/d0"}, "$defs": {**links, f"d{length}": {}}}


def read(schema: dict[str, Any]) -> Any:
    """``schema`` as it comes out of a request: no part of it twice."""
    return json.loads(json.dumps(schema))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (patterns(9), "more than 8 patterns for one value"),
        ({"properties": {"a": patterns(9)}}, "more than 8 patterns for one value at '.properties.a'"),
        ({"pattern": "a", "$ref": "#/$defs/x", "$defs": {"x": patterns(8)}}, "more than 8 patterns for one value"),
        (
            {"anyOf": [{}, {"items": patterns(8), "allOf": [{"items": {"pattern": "a"}}]}]},
            "more than 8 patterns for one value at '.anyOf.1'",
        ),
        (names(50), "more than 1000 pairs of patternProperties to tell apart"),
        ({"allOf": [names(25), names(25)]}, "more than 1000 pairs of patternProperties to tell apart"),
        (
            {"properties": {f"p{index}": names(20) for index in range(6)}},
            "more than 1000 pairs of patternProperties to tell apart at '.properties.p0'",
        ),
        (
            {"properties": {f"p{n}": {**REFERENCE, "required": []} for n in range(6)}, "$defs": {"x": names(20)}},
            "more than 1000 pairs of patternProperties to tell apart at '.properties.p1'",
        ),
        ({"allOf": [choices(50), choices(50)]}, "more than 1000 combinations of alternatives"),
        ({"enum": ["a"] * 3000, "pattern": "a"}, "more than 1000 combinations of alternatives"),
        (chain(MOST_LEVELS // 2), "its references lead more than 800 levels deep"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_too_much_is_told(schema: dict[str, Any], reason: str) -> None:
    assert excess(read(schema)) == reason
    refuse(schema, reason)


def test_more_schemas_than_a_grammar_is_made_of_are_told_before_they_are_weighed() -> None:
    most: dict[str, Any] = {"prefixItems": [{}] * (MOST_SCHEMAS - 1)}
    assert checked_guidance(request(text=json_schema(most))).guide == document(most)
    refuse({"prefixItems": [{}] * MOST_SCHEMAS}, "it holds more than 5000 schemas")
    refuse({"$ref": "#", "prefixItems": [{}] * MOST_SCHEMAS}, "it holds more than 5000 schemas")


def refuse(schema: dict[str, Any], reason: str) -> None:
    """``schema`` is refused for ``reason`` where it guides, and only there."""
    with pytest.raises(ApiError) as refused:
        checked_guidance(request(text=json_schema(schema)))
    assert refused.value.message == f"Decoding cannot be guided by this JSON Schema: {reason}"
    assert refused.value.param == "text.format.schema"
    assert checked_guidance(request(tools=[tool("f", schema)])).functions


BASE = {"properties": {f"p{n}": {"type": "string", "pattern": f"^{n}"} for n in range(300)}}
NODE = {"properties": {"a": {"anyOf": [REFERENCE, {"type": "null"}]}, "b": {"items": REFERENCE}}}


@pytest.mark.parametrize(
    "schema",
    [
        patterns(MOST_PATTERNS),
        names(40),
        choices(1500),
        {"enum": [*range(5000)]},
        {"enum": ["a"] * 1000, "pattern": "a"},
        {"allOf": [{"properties": BASE["properties"]}, {"properties": {"q": {"pattern": "a"}}}]},
        {"$ref": "#/$defs/x", "$defs": {"x": NODE}},
        {"properties": {f"p{n}": REFERENCE for n in range(2000)}, "$defs": {"x": names(40)}},
        chain(MOST_LEVELS // 2 - 2),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_not_too_much_is_not(schema: dict[str, Any]) -> None:
    assert excess(read(schema)) is None


@pytest.mark.parametrize(("strict", "most"), [(True, MOST_GUIDING_TEXT), (False, MOST_TEXT)])
def test_schemas_have_a_size_together(strict: bool, most: int) -> None:
    parameters = {"type": "object", "description": "d" * 49_900}
    tools = [tool(f"f{index}", parameters, strict=strict) for index in range(most // 50_000)]
    assert checked_guidance(request(tools=tools)).functions
    with pytest.raises(ApiError) as refused:
        checked_guidance(request(tools=[*tools, tool("g", parameters, strict=strict)]))
    assert (refused.value.code, refused.value.param) == ("invalid_request", "tools")


def test_the_schemas_that_guide_are_counted_together() -> None:
    crowded = {"type": "object", "anyOf": [{}] * 4_900}
    tools = [tool(f"f{index}", crowded) for index in range(7)]
    assert checked_guidance(request(tools=[{**each, "strict": True} for each in tools[:6]])).functions
    assert checked_guidance(request(tools=tools)).functions
    with pytest.raises(ApiError, match="more than 30000 opening braces together") as refused:
        checked_guidance(request(tools=[{**each, "strict": True} for each in tools]))
    assert (refused.value.code, refused.value.param) == ("invalid_request", "tools")


def test_short_references_that_become_long_pointers_are_told() -> None:
    long = {"properties": {f"p{n}": {"$ref": "#a"} for n in range(100)}, "$defs": {"x" * 10_000: {"$anchor": "a"}}}
    with pytest.raises(ApiError) as refused:
        checked_guidance(request(text=json_schema(long)))
    assert "names that are too long" in refused.value.message
