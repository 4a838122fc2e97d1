"""Schemas that guide are looked at once each, in portions, and never where a request is prepared."""

import json
from typing import Any

import pytest

from sidecar.guidance import engine
from sidecar.guidance.decision import plan_guidance
from sidecar.guidance.guides import Guide, note, portions, unchecked
from sidecar.responses.errors import ApiError
from tests.core import kit
from tests.core.guidance.requests import json_schema, request, tool


def new(name: str, size: int = 0) -> Guide:
    """A guide that no other test has; its document has at least ``size`` characters."""
    return Guide(json.dumps({"const": f"tests {name}".ljust(size)}), f"tools[{name}]")


def test_what_a_grammar_was_made_of_is_not_looked_at_again() -> None:
    first, second = new("1"), new("2")
    assert unchecked([first, second]) == (first, second)
    note([first], [None])
    assert unchecked([first, second]) == (second,)


def test_what_cannot_guide_is_refused_from_then_on_wherever_it_stands() -> None:
    good, bad = new("3"), new("4")
    with pytest.raises(ApiError, match="Decoding cannot be guided by this JSON Schema: no way") as refused:
        note([good, bad], [None, "no way"])
    assert (refused.value.code, refused.value.param) == ("invalid_request", "tools[4]")
    with pytest.raises(ApiError) as refused:
        unchecked([good, Guide(bad.document, "text.format.schema")])
    assert refused.value.param == "text.format.schema"


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [([], []), ([10] * 5, [5]), ([40_000] * 3, [1, 1, 1]), ([30_000] * 5, [2, 2, 1]), ([10, 900_000, 10], [1, 1, 1])],
)
def test_portions_are_bounded_and_leave_nothing_out(sizes: list[int], counts: list[int]) -> None:
    guides = [new(f"{index}", size) for index, size in enumerate(sizes)]
    found = portions(guides)
    assert [len(portion) for portion in found] == counts
    assert [guide for portion in found for guide in portion] == guides


@pytest.mark.parametrize(
    ("body", "params"),
    [
        ({"text": json_schema({"const": "tests 5"})}, ["text.format.schema"]),
        ({"tools": [tool("f", {"required": ["tests 6"]}, strict=True), tool("g", {})]}, ["tools[0].parameters"]),
        (
            {"tools": [tool("f", {"required": ["tests 7"]})], "tool_choice": "required"},
            ["tools[0].parameters", "tools"],
        ),
    ],
)
def test_planning_makes_no_grammar(monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], params: list[str]) -> None:
    asked = request(**body)
    with monkeypatch.context() as without:
        without.delattr(engine, "LLMatcher")
        guidance = plan_guidance(asked, True, "refuse")
    assert [guide.param for guide in guidance.unchecked] == params
    assert guidance.guide is None or guidance.guide == guidance.unchecked[-1].document
    kit.check(guidance.unchecked)
    assert plan_guidance(asked, True, "refuse").unchecked == ()
