"""A model's way of writing: by setting, or off its chat template."""

import pytest

from sidecar.generation.coroutine import PlainText
from sidecar.generation.formats import FORMATS
from sidecar.generation.reasoning import REASONING, ReasoningFormat
from sidecar.generation.style import choose_style, guided_parser

QWEN3 = '{% if enable_thinking %}<think>{% endif %}</think><tool_call>{"name": ...}</tool_call>'


@pytest.mark.parametrize(
    ("template", "reasoning", "calls", "chosen"),
    [
        ("", "auto", "auto", (None, FORMATS["hermes"])),
        (QWEN3, "auto", "auto", (REASONING["think"], FORMATS["hermes"])),
        (QWEN3, "none", "none", (None, None)),
        ("", "mistral", "mistral", (REASONING["mistral"], FORMATS["mistral"])),
        ("", "think", "harmony", (None, FORMATS["harmony"])),
        ("", ReasoningFormat("Thought:", "Response:"), "none", (ReasoningFormat("Thought:", "Response:"), None)),
    ],
)
def test_settings_win_over_the_template(template: str, reasoning: str, calls: str, chosen: object) -> None:
    style = choose_style(template, reasoning=reasoning, calls=calls)
    assert (style.reasoning, style.calls) == chosen


@pytest.mark.parametrize(("reasoning", "calls"), [("thunk", "auto"), ("auto", "hermse")])
def test_an_unknown_format_is_named(reasoning: str, calls: str) -> None:
    with pytest.raises(ValueError, match=r"unknown (reasoning|tool) format (thunk|hermse); known are "):
        choose_style("", reasoning=reasoning, calls=calls)


def test_markers_of_both_must_show() -> None:
    style = choose_style("", reasoning="think", calls="mistral")
    assert {"<think>", "</think>", "[TOOL_CALLS]"} <= set(style.markers)


def test_answers_without_functions_are_text_unless_the_format_frames_all() -> None:
    assert isinstance(choose_style("", reasoning="none", calls="hermes").parser({}, ""), PlainText)
    assert not isinstance(choose_style("", reasoning="none", calls="harmony").parser({}, ""), PlainText)
    assert isinstance(guided_parser({}), PlainText)
