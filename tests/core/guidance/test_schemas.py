"""Demands on the form of an answer: which schema guides it, which is refused before the model is touched."""

import json
from typing import Any

import pytest
from llguidance import LLMatcher

from sidecar.guidance.decision import plan_guidance
from sidecar.guidance.demands import argument_schemas, calls_guide, demanded_tools, document
from sidecar.guidance.engine import guide_fault
from sidecar.guidance.self_contained import self_contained
from sidecar.guidance.validation import fits
from sidecar.responses.errors import ApiError
from tests.core.guidance.requests import checked_guidance, json_schema, request, tool

STEPS = {"type": "array", "items": {"$ref": "#/$defs/S"}}
STEP = {"type": "object", "properties": {"e": {"type": "string"}}, "required": ["e"]}
REFERRING = {"type": "object", "properties": {"steps": STEPS}, "required": ["steps"], "$defs": {"S": STEP}}
RECURSIVE = {"type": "object", "properties": {"child": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}
IMPOSSIBLE = {"type": "object", "properties": {"a": {"not": {"type": "string"}}}}
INVALID = {"type": "object", "properties": {"a": {"type": "wonder"}}}


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "f"}])
@pytest.mark.parametrize("parameters", [None, REFERRING, RECURSIVE])
def test_a_demanded_call_is_guided_by_name_and_arguments(choice: Any, parameters: Any) -> None:
    asked = request(tools=[tool("f", parameters), tool("g", REFERRING)], tool_choice=choice)
    guide = calls_guide(demanded_tools(asked), argument_schemas(asked), several=False)
    schema = json.loads(guide.document)
    assert LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(document(schema))) == ""
    assert fits('{"name": "f", "arguments": {}}', schema) is (parameters is not REFERRING)
    assert fits('{"name": "f", "arguments": {"steps": [{"e": "x"}]}}', schema) is (parameters is not None)
    assert not fits('{"name": "f", "arguments": {"steps": [{"e": 1}]}}', schema) or parameters is not REFERRING
    assert not fits('{"name": "h", "arguments": {}}', schema)
    assert fits('{"name": "g", "arguments": {"steps": []}}', schema) is (choice == "required")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(", "unclosed group"), ("(?=a)", "look-around"), ("[z-a]", "invalid character class range")],
)
def test_a_pattern_that_cannot_guide_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    fault = guide_fault(json.dumps({"type": "string", "pattern": pattern}))
    assert fault is not None
    assert fault.startswith(f"regex parse error: {reason}")
    assert pattern not in fault


def test_definitions_may_stand_in_any_order() -> None:
    reordered = {"$defs": REFERRING["$defs"], **REFERRING}
    for schema in (REFERRING, reordered):
        guidance = checked_guidance(request(text=json_schema(schema)))
        assert guidance.guide is not None
        assert json.loads(guidance.guide) == schema


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"text": json_schema(IMPOSSIBLE)}, "text.format.schema"),
        ({"text": json_schema(INVALID)}, "text.format.schema"),
        ({"tools": [tool("f"), tool("g", INVALID)]}, "tools[1].parameters"),
        ({"tools": [tool("f", IMPOSSIBLE, strict=True)]}, "tools[0].parameters"),
        ({"tools": [tool("f", IMPOSSIBLE)], "tool_choice": "required"}, "tools[0].parameters"),
        ({"text": json_schema({"$ref": "#/nowhere"})}, "text.format.schema"),
    ],
)
def test_a_schema_that_cannot_guide_is_refused_by_its_path(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        checked_guidance(request(**body))
    assert (refused.value.code, refused.value.param) == ("invalid_request", param)


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-07/schema#", "title": "T", "type": "object", "default": {}},
        {"type": "object", "properties": {"a": {"type": "string", "format": "no-such-format", "description": "d"}}},
        {"type": "object", "properties": {"format": {"type": "string"}}, "required": ["format"]},
    ],
)
def test_annotations_and_formats_are_never_a_fault(schema: Any) -> None:
    assert checked_guidance(request(text=json_schema(schema))).guide is not None


def test_a_member_called_format_stays() -> None:
    schema = {"type": "object", "properties": {"format": {"type": "string", "format": "date"}}}
    assert self_contained(schema) == {"type": "object", "properties": {"format": {"type": "string"}}}


def test_tools_the_model_may_leave_alone_are_not_guided() -> None:
    guidance = checked_guidance(request(tools=[tool("f", IMPOSSIBLE)]))
    assert guidance.guide is None
    assert set(guidance.functions) == {"f"}


def test_json_beside_tools_is_only_checked() -> None:
    guidance = checked_guidance(request(tools=[tool("f")], text=json_schema(REFERRING)))
    assert guidance.guide is None
    assert guidance.text_schema == REFERRING


def test_json_beside_tools_that_are_switched_off_is_guided() -> None:
    asked = request(tools=[tool("f")], tool_choice="none", text=json_schema(REFERRING))
    guidance = checked_guidance(asked)
    assert guidance.guide is not None
    assert not guidance.functions


def test_json_object_is_guided_to_an_object() -> None:
    guidance = checked_guidance(request(text={"format": {"type": "json_object"}}))
    assert guidance.guide == '{"type": "object"}'


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"text": json_schema(REFERRING)}, "text.format"),
        ({"tools": [tool("f")], "tool_choice": "required"}, "tool_choice"),
    ],
)
def test_without_guided_decoding_a_demand_is_refused_or_put_in_words(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        plan_guidance(request(**body), False, "refuse")
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", param)
    guidance = plan_guidance(request(**body), False, "prompt")
    assert guidance.guide is None
    assert guidance.demand


def test_several_calls_are_a_list_of_calls() -> None:
    guidance = checked_guidance(request(tools=[tool("f"), tool("g", REFERRING)], tool_choice="required"))
    assert guidance.guide is not None
    schema = json.loads(guidance.guide)
    assert LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(guidance.guide)) == ""
    assert fits('[{"name": "f", "arguments": {}}]', schema)
    assert fits('[{"name": "g", "arguments": {"steps": [{"e": "x"}]}}, {"name": "f", "arguments": {}}]', schema)
    for text in ("[]", '{"name": "f", "arguments": {}}', '[{"name": "g", "arguments": {"steps": [{"e": 1}]}}]'):
        assert not fits(text, schema)


@pytest.mark.parametrize(
    "body",
    [{"tool_choice": "required", "parallel_tool_calls": False}, {"tool_choice": {"type": "function", "name": "f"}}],
)
def test_a_named_call_or_one_that_must_be_alone_is_exactly_one(body: dict[str, Any]) -> None:
    guidance = checked_guidance(request(tools=[tool("f"), tool("g")], **body))
    assert guidance.guide is not None
    assert fits('{"name": "f", "arguments": {}}', json.loads(guidance.guide))
    assert not fits('[{"name": "f", "arguments": {}}]', json.loads(guidance.guide))


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "f"}])
def test_a_function_without_parameters_takes_no_arguments(choice: Any) -> None:
    asked = request(tools=[tool("f")], tool_choice=choice, parallel_tool_calls=False)
    guidance = checked_guidance(asked)
    assert guidance.guide is not None
    assert not fits('{"name": "f", "arguments": {"a": 1}}', json.loads(guidance.guide))


@pytest.mark.parametrize("types", ["array", "string", ["array", "null"]])
@pytest.mark.parametrize(("strict", "choice"), [(None, "required"), (True, "auto")])
def test_arguments_that_are_no_object_are_refused_where_they_are_enforced(types: Any, strict: Any, choice: str) -> None:
    with pytest.raises(ApiError) as refused:
        checked_guidance(request(tools=[tool("f", {"type": types}, strict=strict)], tool_choice=choice))
    assert (refused.value.code, refused.value.param) == ("invalid_request", "tools[0].parameters")


@pytest.mark.parametrize("parameters", [{}, {"type": ["object", "null"]}, {"properties": {"a": {"type": "string"}}}])
def test_arguments_that_may_be_anything_are_narrowed_to_objects(parameters: Any) -> None:
    asked = request(tools=[tool("f", parameters)], tool_choice="required", parallel_tool_calls=False)
    guidance = checked_guidance(asked)
    assert guidance.guide is not None
    assert fits('{"name": "f", "arguments": {"a": "x"}}', json.loads(guidance.guide))
    for arguments in ("null", "[]", "1"):
        assert not fits(f'{{"name": "f", "arguments": {arguments}}}', json.loads(guidance.guide))


@pytest.mark.parametrize("text", ["", "{", '{"e": 1}', "[1]", '{"e": "x"} trailing'])
def test_text_that_does_not_fit_is_seen(text: str) -> None:
    assert not fits(text, STEP)
