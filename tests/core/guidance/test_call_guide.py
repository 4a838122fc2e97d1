"""Guides of calls in free text admit text, and from a call's marker on nothing but a call that fits."""

import json
import sys
from types import FrameType
from typing import Any

import pytest
from llguidance import LLMatcher, LLTokenizer, StructTag
from llguidance.gbnf_to_lark import gbnf_to_lark

from sidecar.generation.formats import FORMATS
from sidecar.guidance.call_guide import CallGuide, CallGuideForm, call_guide
from sidecar.guidance.decision import Guidance, plan_guidance
from sidecar.guidance.validation import fits
from tests.core.guidance.requests import json_schema, request, tool

FRAMING = FORMATS["hermes"].framing
FORMS: list[CallGuideForm] = ["structural_tag", "ebnf_grammar"]
BYTES = LLTokenizer("byte")
NODE = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "additionalProperties": False,
}
CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["c", 'f"\\\n']},
        "days": {"type": ["integer", "null"]},
        "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
    "$defs": {"node": NODE},
}
PATTERN = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}, "required": ["a"]}


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def grammar(guide: CallGuide, form: CallGuideForm) -> str:
    """The guide as a grammar of the engine at hand, made by the engine's own readers of either form."""
    assert guide.document is not None
    if form == "ebnf_grammar":
        return "%llguidance {}\n" + gbnf_to_lark(guide.document)
    tag = json.loads(guide.document)
    (trigger,) = tag["triggers"]
    return StructTag.to_grammar(
        [StructTag(trigger=trigger, begin=s["begin"], grammar=s["schema"], end=s["end"]) for s in tag["structures"]],
        assume_special=False,
    )


def admits(guide: CallGuide, form: CallGuideForm, text: str) -> bool:
    matcher = LLMatcher(BYTES, grammar(guide, form), log_level=0)
    tokens = BYTES.tokenize_bytes(text.encode())
    return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("a < b, <tool, «é»\n<tool_cal", True),
        (call("f", '{"city": "Paris", "days": null}'), True),
        ("on it <" + call("f", '{"city": "P\\n\\"é", "unit": "c", "days": -12}') + "\n", True),
        (call("f", '{"city": "", "days": 0, "nodes": []}') + call("g", '{"a": [1.5e3, {"b": true}]}'), True),
        (call("f", '{"city": "P", "days": 1, "nodes": [{"x": 1, "next": {"next": null}}, {}]}'), True),
        (call("f", '{"city": "P", "unit": "f\\"\\\\\\n", "days": 1}'), True),
        ("<tool_call>no", False),
        (call("f", "{}"), False),
        (call("f", '{"city": "P"}'), False),
        (call("f", '{"city": "P", "days": "1"}'), False),
        (call("f", '{"city": "P", "days": 1, "more": 1}'), False),
        (call("f", '{"city": "P", "unit": "k", "days": 1}'), False),
        (call("f", '{"city": "P", "days": 1, "nodes": [{"y": 1}]}'), False),
        (call("f", '{"city": "P", "days": 1, "nodes": [{}, {}, {}]}'), False),
        (call("g", "[]"), False),
        (call("h", "{}"), False),
        ("<<tool_call>{}", False),
    ],
)
def test_text_is_free_and_calls_are_not(form: CallGuideForm, text: str, expected: bool) -> None:
    guide = call_guide({"f": CITY, "g": {}}, {"f": CITY}, FRAMING, form)
    assert guide.constrained == {"f"}
    assert admits(guide, form, text) is expected


INEXPRESSIBLE: list[dict[str, Any]] = [
    PATTERN,
    {"type": "object", "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}},
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 100_000}}},
    {"type": "object", "properties": {"a": {"prefixItems": [{"type": "null"}]}}},
    {"type": "object", "properties": {"a": {"allOf": [{"type": "null"}]}}},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/q", "maxLength": 1}}, "$defs": {"q": {"type": "string"}}},
    {"type": "object", "properties": {"a": False}},
    {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
    {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/properties/a"}]}}},
    {"type": "object", "minProperties": 1},
    {"type": "object", "patternProperties": {"^a": {"type": "null"}}},
]


@pytest.mark.parametrize("schema", INEXPRESSIBLE, ids=str)
def test_what_a_grammar_cannot_say_is_any_object(schema: dict[str, Any]) -> None:
    assert call_guide({"f": schema}, {"f": schema}, FRAMING, "ebnf_grammar") == CallGuide()
    guide = call_guide({"f": schema, "g": CITY}, {"f": schema, "g": CITY}, FRAMING, "ebnf_grammar")
    assert guide.constrained == {"g"}
    assert admits(guide, "ebnf_grammar", call("f", '{"b": 1}'))
    assert not admits(guide, "ebnf_grammar", call("g", '{"b": 1}'))


def test_a_grammar_too_long_for_a_runtime_is_left_out() -> None:
    schemas = {f"f{index}": CITY for index in range(400)}
    assert call_guide(schemas, schemas, FRAMING, "ebnf_grammar") == CallGuide()
    assert len(call_guide(schemas, schemas, FRAMING, "structural_tag").constrained) == 400


EXPRESSIBLE: list[tuple[dict[str, Any], list[str]]] = [
    ({"properties": {"a": {}, "b": True}}, ['{"a": [], "b": {"c": null}}', '{"b":1}', "{}"]),
    ({"additionalProperties": False}, ["{}"]),
    ({"additionalProperties": {"type": "null"}}, ["{}", '{"a": null, "é": null}']),
    ({"properties": {"a": {"const": {"b": [1, "é"]}}}}, ['{"a": {"b": [1, "é"]}}']),
    ({"properties": {"a": {"minLength": 2, "maxLength": 3}}}, ['{"a": "xyz"}', '{"a": "\\u0041y"}']),
    ({"properties": {"a": {"items": {"type": "null"}, "minItems": 2}}}, ['{"a": [null, null, null]}']),
    ({"properties": {"a": {"type": "array", "maxItems": 0}}}, ['{"a": []}']),
    ({"properties": {"a/b": {"$ref": "#/properties/a~1b/anyOf/0", "anyOf": [{}]}}}, []),
    ({"properties": {"a b": {"type": "null"}, "c": {"$ref": "#/properties/a%20b"}}}, ['{"c": null}']),
    ({"properties": {"a": {"type": ["boolean", "null", "string"]}}}, ['{"a": "x"}', '{"a": false}']),
]


@pytest.mark.parametrize(("schema", "arguments"), EXPRESSIBLE, ids=str)
def test_what_a_grammar_admits_fits_the_schema(schema: dict[str, Any], arguments: list[str]) -> None:
    schema = {"type": "object"} | schema
    guide = call_guide({"f": schema, "g": CITY}, {"f": schema, "g": CITY}, FRAMING, "ebnf_grammar")
    assert ("f" in guide.constrained) is bool(arguments)
    for text in arguments:
        assert fits(text, schema)
        assert admits(guide, "ebnf_grammar", call("f", text))


def work(form: CallGuideForm, functions: int) -> int:
    """How many functions are called, those of the interpreter among them, to make a guide of so many functions."""
    schemas = {f"counted{functions}_{index}": CITY for index in range(functions)}
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    profiler = sys.getprofile()
    sys.setprofile(note)
    try:
        guide = call_guide(schemas, schemas, FRAMING, form)
    finally:
        sys.setprofile(profiler)
    assert len(guide.constrained) == functions
    return count


@pytest.mark.parametrize("form", FORMS)
def test_the_work_grows_with_the_functions_and_no_faster(form: CallGuideForm) -> None:
    assert work(form, 100) <= 4.4 * work(form, 25)


def plan(form: CallGuideForm | None, *tools: dict[str, Any], framed: bool = True, **body: Any) -> Guidance:
    asked = request(tools=list(tools), **body)
    return plan_guidance(asked, form is not None, "prompt", framing=FRAMING if framed else None, call_guide_form=form)


STRICT = tool("f", CITY, strict=True)


@pytest.mark.parametrize(
    ("guidance", "guided", "strict"),
    [
        (plan("structural_tag", STRICT, tool("g")), True, {"f": True, "g": False}),
        (plan("ebnf_grammar", STRICT, tool("g")), True, {"f": True, "g": False}),
        (plan("structural_tag", tool("f", PATTERN, strict=True)), True, {"f": True}),
        (plan("ebnf_grammar", tool("f", PATTERN, strict=True)), False, {"f": False}),
        (plan("ebnf_grammar", STRICT, framed=False), False, {"f": False}),
        (plan(None, STRICT), False, {"f": False}),
        (plan("ebnf_grammar", tool("f", CITY)), False, {"f": False}),
        (plan("ebnf_grammar", STRICT, text=json_schema(CITY)), True, {"f": True}),
        (plan("ebnf_grammar", STRICT, tool_choice="none"), False, {"f": True}),
        (plan("ebnf_grammar", STRICT, tool("g"), tool_choice="required"), False, {"f": True, "g": True}),
        (plan(None, STRICT, tool("g"), tool_choice={"type": "function", "name": "f"}), False, {"f": False, "g": True}),
    ],
)
def test_strict_says_what_was_applied(guidance: Guidance, guided: bool, strict: dict[str, bool]) -> None:
    assert (guidance.call_guide is not None) is guided
    assert guidance.strict == strict


def test_finished_arguments_of_strict_functions_are_checked() -> None:
    guidance = plan(None, STRICT, tool("g", CITY), tool("h", strict=True))
    assert guidance.check_arguments("f", '{"city": "P", "days": 1}')
    assert not guidance.check_arguments("f", '{"city": "P"}')
    assert not guidance.check_arguments("f", '{"city": "P"')
    assert guidance.check_arguments("g", "{}")
    assert guidance.check_arguments("h", "{}")
    assert not guidance.check_arguments("h", '{"a": 1}')
    assert guidance.check_arguments("unknown", "{}")
