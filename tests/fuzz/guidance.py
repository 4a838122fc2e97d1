"""The fuzz target of guidance: ``python -m tests.fuzz.guidance [options of libFuzzer]``.

Whatever a client calls a schema and whatever a model answers: nothing is raised but a refusal, nothing is opened, the
values in a schema stay the client's, what is sent as a guide has been compiled as it is, and the work is bounded.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import atheris

with atheris.instrument_imports(include=["sidecar.guidance"]):
    from sidecar.guidance.decision import Guidance
    from sidecar.guidance.demands import argument_schemas
    from sidecar.guidance.dialects import dialect_of
    from sidecar.guidance.engine import guide_fault
    from sidecar.guidance.positions import subschemas
    from sidecar.guidance.schemas import schema_fault
    from sidecar.guidance.self_contained import UnresolvableError, self_contained
    from sidecar.guidance.validation import MOST_STEPS, fits
from sidecar.generation.formats import FORMATS
from sidecar.responses.errors import ApiError
from tests.core.guidance.requests import checked_guidance, json_schema, request, tool
from tests.hostile.work import MOST_CALLS, calls, look_at

TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]
NAMES = ["a", "b", "$ref", "const", "items", "a/b", "é~%", ""]
REFERENCES = [
    *("#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/items", "#/definitions/a", "#a", "b", "#/const/a", "#/x/y"),
    *(
        "http://schema.invalid/x",
        "https://[",
        "file:///etc/hostname",
        "urn:x:y#a",
        "//h/../a#/$defs/a",
        "#/a~1b/%C3%A9",
    ),
]
PATTERNS = ["^a+$", "^(a+)+$", "a{1,9}", "[^b]*", r"^\p{L}", "(", r"(a)\1", "a|b", "", "é"]
DIALECTS = [
    *(None, 5, "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"),
    *("https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema", "http://["),
]
VALUES = ["const", "default", "enum", "examples"]
SINGLE = [
    *("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
]
NAMED = ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
LISTS = ["allOf", "anyOf", "items", "oneOf", "prefixItems"]
NUMBERS = [
    *("exclusiveMaximum", "exclusiveMinimum", "maxContains", "maxItems", "maxLength", "maxProperties", "maximum"),
    *("minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf"),
]
STRINGS = ["$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef", "$ref", "id"]
KEYWORDS = [*SINGLE, *NAMED, *LISTS, *VALUES, *NUMBERS, *STRINGS, "$ref", "type", "pattern", "required", "uniqueItems"]
MOST_SCHEMAS = 40
FRAMING = FORMATS["hermes"].framing
OPENING = ("open", "socket.", "subprocess.", "os.", "urllib.", "http.", "shutil.")


class _Schemas:
    """Schemas, most of them such as might be meant, made of the fuzzer's choices."""

    def __init__(self, choices: Any) -> None:
        self._choices = choices
        self._left = MOST_SCHEMAS

    def schema(self, depth: int = 0) -> Any:
        choose = self._choices
        self._left -= 1
        if self._left < 0 or depth > 8 or not choose.ConsumeIntInRange(0, 9):
            return choose.PickValueInList([True, False, {}, {"type": "string"}, {"$ref": "#"}])
        found: dict[str, Any] = {}
        for _ in range(choose.ConsumeIntInRange(1, 4)):
            keyword = choose.PickValueInList(KEYWORDS)
            # Now and then a keyword has a value of another one.
            like = keyword if choose.ConsumeIntInRange(0, 19) else choose.PickValueInList(KEYWORDS)
            found[keyword] = self._member(like, depth + 1)
        if not depth and choose.ConsumeBool():
            found["$schema"] = choose.PickValueInList(DIALECTS)
        return found

    def _member(self, keyword: str, depth: int) -> Any:
        choose = self._choices
        if keyword in SINGLE and (keyword != "items" or choose.ConsumeBool()):
            return self.schema(depth)
        if keyword in NAMED:
            names = PATTERNS if keyword == "patternProperties" else NAMES
            return {choose.PickValueInList(names): self.schema(depth) for _ in range(choose.ConsumeIntInRange(0, 3))}
        if keyword in LISTS:
            return [self.schema(depth) for _ in range(choose.ConsumeIntInRange(0, 3))]
        if keyword in NUMBERS:
            return choose.PickValueInList([0, 1, 2, 7, 1000, -1, 0.5, 1e300, 10**400, True, "1"])
        if keyword in STRINGS:
            return choose.PickValueInList(REFERENCES)
        if keyword == "pattern":
            return choose.PickValueInList(PATTERNS)
        if keyword == "required":
            return [choose.PickValueInList(NAMES) for _ in range(choose.ConsumeIntInRange(0, 3))]
        if keyword == "type":
            return choose.PickValueInList([*TYPES, TYPES, ["object", "null"], "wonder"])
        if keyword == "enum":
            return [self.value(depth) for _ in range(choose.ConsumeIntInRange(0, 3))]
        return self.value(depth)

    def value(self, depth: int = 0) -> Any:
        choose = self._choices
        kind = choose.ConsumeIntInRange(0, 5 if depth < 8 else 3)
        if kind == 4:
            return [self.value(depth + 1) for _ in range(choose.ConsumeIntInRange(0, 3))]
        if kind == 5:
            return {choose.PickValueInList(NAMES): self.value(depth + 1) for _ in range(choose.ConsumeIntInRange(0, 3))}
        return choose.PickValueInList([None, True, 0, 1.0, -1, 10**400, 1e-7, "", "a", "aaaa!", "é", "#/$defs/a"])


class _Guard:
    """While it is armed nothing may be opened."""

    armed = False

    def __call__(self, event: str, arguments: object) -> None:
        if self.armed and event.startswith(OPENING):
            self.armed = False
            raise AssertionError(f"{event} {arguments}")


GUARD = _Guard()


def judge(data: bytes) -> None:
    """Ask for what a schema made of ``data`` describes, and look at an answer."""
    choices = atheris.FuzzedDataProvider(data)
    make = _Schemas(choices)
    schema = make.schema()
    schema = schema if isinstance(schema, dict) else {"not": schema}
    text = json.dumps(make.value()) if choices.ConsumeBool() else choices.ConsumeUnicodeNoSurrogates(40)
    before = json.dumps(schema)
    GUARD.armed = True
    try:
        if schema_fault(before) is None:
            _check_values(schema)
        if not choices.ConsumeIntInRange(0, 9):
            assert calls(lambda: look_at(schema)) <= MOST_CALLS * (len(before) + 100)
        for guidance in _plans(schema):
            _check(guidance, text)
    finally:
        GUARD.armed = False
    assert json.dumps(schema) == before


def _plans(schema: dict[str, Any]) -> list[Guidance]:
    bodies: list[dict[str, Any]] = [
        {"text": json_schema(schema)},
        {"tools": [tool("f", schema), tool("g", schema)], "tool_choice": "required"},
        {"tools": [tool("f", schema, strict=True), tool("g", schema)]},
    ]
    plans = []
    for body in bodies:
        for form in ("structural_tag", "ebnf_grammar"):
            try:
                asked = request(**body)
                plans.append(checked_guidance(asked, framing=FRAMING, call_guide_form=form))
            except ApiError as refused:
                assert refused.status == 400, refused
                assert refused.param
    return plans


def _check(guidance: Guidance, text: str) -> None:
    if guidance.guide is not None:
        assert guide_fault(guidance.guide) is None
        guide = json.loads(guidance.guide)
        assert calls(lambda: fits(text, guide)) <= 3 * MOST_STEPS
    guidance.check_arguments("f", text)


def _check_values(schema: dict[str, Any]) -> None:
    """The values that a translation holds are those of the schema, the very objects."""
    theirs: set[int] = set()
    _collect(schema, theirs)
    try:
        translated = self_contained(schema)
    except UnresolvableError:
        return
    held = [translated]
    while held:
        member = held.pop()
        if not isinstance(member, dict):
            continue
        assert all(id(member[keyword]) in theirs for keyword in VALUES if keyword in member)
        held += [inside for _, _, inside in subschemas(member)]


def _collect(value: Any, found: set[int]) -> None:
    found.add(id(value))
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _collect(member, found)


def main() -> None:
    """Fuzz, with what is loaded on the first use loaded."""
    for dialect in DIALECTS:
        named = {"$schema": dialect, "type": "string", "pattern": "a"}
        assert dialect_of(named)
        schema_fault(json.dumps(named))
        fits('"a"', {"type": "string", "pattern": "a"})
    argument_schemas(request(tools=[tool("f", {}, strict=True)]))
    sys.addaudithook(GUARD)
    atheris.Setup(sys.argv, judge)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
