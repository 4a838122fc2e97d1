"""What is never refused: dialects, annotations, and whatever a schema holds that nothing has to keep to."""

import json
import socket
from typing import Any

import pytest

from sidecar.guidance.decision import Guidance
from sidecar.guidance.schemas import schema_fault
from sidecar.guidance.validation import fits
from sidecar.responses.errors import ApiError
from tests.core.guidance.requests import checked_guidance, json_schema, request, tool

DIALECTS = [
    5,
    ["x"],
    {},
    True,
    "",
    "https://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://spec.openapis.org/oas/3.1/dialect/base",
    "http://[",
]
PLAIN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
NAMED = "(?<y>[0-9]{4})"
ANY_WHERE = [r"^\p{L}+$", NAMED]
NO_PATTERN = ["[", r"(a)\1", "^(?=a)"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("nothing may be fetched")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def plans(schema: Any) -> list[Guidance]:
    """The guidance of requests that hold ``schema`` in each place where it is enforced."""
    bodies: list[dict[str, Any]] = [
        {"text": json_schema(schema)},
        {"tools": [tool("f", schema)], "tool_choice": "required"},
        {"tools": [tool("f", schema, strict=True)]},
    ]
    return [checked_guidance(request(**body)) for body in bodies]


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
@pytest.mark.parametrize("inside", [False, True])
def test_a_dialect_is_never_a_fault(dialect: Any, inside: bool) -> None:
    named = PLAIN | {"$schema": dialect}
    if inside:
        named = {"type": "object", "properties": {"p": named}, "required": ["p"]}
    for guidance in plans(named):
        assert "$schema" not in (guidance.guide or "")
    plain = {"type": "object", "properties": {"p": PLAIN}, "required": ["p"]} if inside else PLAIN
    assert [guidance.guide for guidance in plans(named)] == [guidance.guide for guidance in plans(plain)]


@pytest.mark.parametrize("keyword", ["title", "description", "default", "format", "examples", "$comment", "readOnly"])
@pytest.mark.parametrize("value", [5, [], {"type": 7}])
def test_an_annotation_is_never_a_fault(keyword: str, value: Any) -> None:
    annotated = PLAIN | {keyword: value, "properties": {"a": {"type": "string", keyword: value}}}
    assert [guidance.guide for guidance in plans(annotated)] == [guidance.guide for guidance in plans(PLAIN)]


@pytest.mark.parametrize(
    ("dialect", "schema", "fault"),
    [
        ("http://json-schema.org/draft-04/schema#", {"minimum": 1, "exclusiveMinimum": True}, None),
        ("http://json-schema.org/draft-07/schema#", {"minimum": 1, "exclusiveMinimum": True}, ".exclusiveMinimum"),
        ("http://json-schema.org/draft-07/schema#", {"items": [{"type": "string"}]}, None),
        ("https://json-schema.org/draft/2020-12/schema", {"items": [{"type": "string"}]}, ".items"),
        ("https://spec.openapis.org/oas/3.1/dialect/base", {"items": [{"type": "string"}]}, ".items"),
        ("http://json-schema.org/draft-07/schema#", {"properties": {"a": {"type": "wonder"}}}, ".properties.a.type"),
        (None, {"anyOf": [{"type": "string"}, {"required": 1}]}, ".anyOf[1].required"),
        (None, {"properties": 5}, ".properties"),
        (None, {"properties": {"a": 5}}, ".properties.a"),
        (None, {"anyOf": []}, ".anyOf"),
        (None, {"$id": 5}, ".$id"),
    ],
)
def test_a_known_dialect_decides_what_a_schema_is(dialect: Any, schema: dict[str, Any], fault: str | None) -> None:
    assert schema_fault(json.dumps({"$schema": dialect} | schema)) == fault


@pytest.mark.parametrize("pattern", [*ANY_WHERE, *NO_PATTERN])
def test_a_pattern_that_nothing_enforces_is_never_a_fault(pattern: str) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    assert checked_guidance(request(tools=[tool("f", parameters)])).functions == {"f": parameters}


@pytest.mark.parametrize("pattern", ANY_WHERE)
def test_a_pattern_that_the_engine_takes_is_taken(pattern: str) -> None:
    assert plans({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})[0].guide


@pytest.mark.parametrize("pattern", NO_PATTERN)
def test_a_pattern_that_cannot_be_enforced_is_refused(pattern: str) -> None:
    with pytest.raises(ApiError) as refused:
        checked_guidance(request(text=json_schema({"type": "string", "pattern": pattern})))
    assert (refused.value.code, refused.value.param) == ("invalid_request", "text.format.schema")


REMOTE = {"type": "object", "properties": {"a": {"$ref": "http://example.test/schema"}}}


def test_a_remote_reference_is_refused_where_it_is_enforced_and_ignored_elsewhere() -> None:
    assert checked_guidance(request(tools=[tool("f", REMOTE)])).functions == {"f": REMOTE}
    for body, param in (
        ({"text": json_schema(REMOTE)}, "text.format.schema"),
        ({"tools": [tool("f", REMOTE)], "tool_choice": "required"}, "tools[0].parameters"),
        ({"tools": [tool("f", REMOTE, strict=True)]}, "tools[0].parameters"),
    ):
        with pytest.raises(ApiError) as refused:
            checked_guidance(request(**body))
        assert (refused.value.code, refused.value.param) == ("invalid_request", param)


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"pattern": "^(a+)+$"}, json.dumps("a" * 2000 + "!"), False),
        ({"pattern": "^(a+)+$"}, json.dumps("a" * 2000), True),
        ({"pattern": "^([a-zA-Z0-9_.+-]+)+@x$"}, json.dumps("b" * 2000), False),
        ({"pattern": r"^\p{L}+$"}, '"Zoë"', True),
        ({"pattern": r"^\p{L}+$"}, '"7"', False),
        ({"pattern": NAMED}, '"in 2024"', True),
        ({"pattern": "b"}, r'"a\nb\"\\"', True),
        ({"pattern": "^b"}, '"ab"', False),
        ({"pattern": "["}, '"anything"', None),
        ({"pattern": "b"}, "1", True),
        ({"patternProperties": {"^(a+)+$": {"type": "string"}}}, '{"aa": 1}', False),
        ({"patternProperties": {"^(a+)+$": {"type": "string"}}}, '{"b": 1}', True),
        ({"patternProperties": {"^a": True}, "additionalProperties": False}, '{"ab": 1}', True),
        ({"patternProperties": {"^a": True}, "additionalProperties": False}, '{"ba": 1}', False),
        ({"properties": {"b": True}, "additionalProperties": {"type": "null"}}, '{"b": 1, "c": null}', True),
        ({"properties": {"b": True}, "additionalProperties": {"type": "null"}}, '{"b": 1, "c": 1}', False),
        ({"$ref": "http://example.test/schema"}, "NaN", False),
        ({"multipleOf": 0.1}, "1" + "0" * 400, True),
        ({"multipleOf": 0.1}, "1e400", False),
        ({"type": "number"}, "NaN", False),
    ],
)
def test_an_answer_is_checked_as_the_engine_reads_its_schema(schema: Any, text: str, expected: bool | None) -> None:
    assert fits(text, schema) is expected
