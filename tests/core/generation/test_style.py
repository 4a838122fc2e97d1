"""A model's way of writing: by setting, or off its chat template."""

import pytest

from sidecar.generation.coroutine import PlainText
from sidecar.generation.formats import FORMATS
from sidecar.generation.reasoning import REASONING, ReasoningFormat
from sidecar.generation.style import choose_style, guided_parser
from tests.core.generation.segments_kit import found, run, text

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
    assert isinstance(choose_style("", reasoning="none", calls="hermes").parser({}, opened=False), PlainText)
    assert not isinstance(choose_style("", reasoning="none", calls="harmony").parser({}, opened=False), PlainText)
    assert isinstance(guided_parser({}), PlainText)


@pytest.mark.parametrize(
    ("template", "calls", "assumed"),
    [
        ('<tool_call>{"name": "{{ name }}", "arguments": ', "auto", False),
        ("{{ tools | tojson }}<call:{{ name }}>", "auto", True),
        ("{{ tools | tojson }}<call:{{ name }}>", "hermes", False),
        ("{{ tools | tojson }}<call:{{ name }}>", "none", False),
    ],
)
def test_a_format_that_the_template_does_not_show_is_assumed(template: str, calls: str, assumed: bool) -> None:
    style = choose_style(template, reasoning="auto", calls=calls)
    assert style.calls_assumed is assumed


@pytest.mark.parametrize(
    ("template", "reasoning", "unknown"),
    [
        (QWEN3, "auto", ()),
        ("{{ '<|begin_of_thought|>' }}{{ '</deep:thinking>' }}", "auto", ("<|begin_of_thought|>", "</deep:thinking>")),
        ("{{ '</deep:thinking>' }}", "none", ()),
        ("{{ '</deep:thinking>' }}", "think", ()),
        ("<|start|>assistant<|channel|>analysis<|message|><|thinking|>", "auto", ()),
        ("Reason about <b>this</b>, if a < thinking > b.", "auto", ()),
    ],
)
def test_markers_like_those_of_reasoning_are_told(template: str, reasoning: str, unknown: tuple[str, ...]) -> None:
    assert choose_style(template, reasoning=reasoning, calls="auto").unknown_reasoning == unknown


def test_text_between_markers_is_read_without_functions_too() -> None:
    style = choose_style("", reasoning="cohere", calls="cohere")
    parser = style.parser({}, opened=style.opens_reasoning("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"))
    generation = "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Hi.<|END_RESPONSE|>"
    assert found(run(parser, generation)) == [("reasoning", "Hm."), text("Hi.")]
