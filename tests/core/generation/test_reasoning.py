"""Reasoning before an answer: markers in any pieces, opened by prompt or model, and the white space around it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.generation.coroutine import PlainText
from sidecar.generation.formats import FORMATS, detect_format
from sidecar.generation.formats.hermes import HermesParser
from sidecar.generation.reasoning import REASONING, ReasoningFormat, ReasoningParser, detect_reasoning
from sidecar.generation.segments import TEXT
from tests.core.generation.segments_kit import FUNCTIONS, Found, call, found, reasoning, run, text
from tests.core.generation.templates import REASONING_TEMPLATES
from tests.core.splits import split_at

THINK = REASONING["think"]
CALL = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
SPOKEN = ReasoningFormat("Here is my thought process:", "Here is my response:")

CASES: dict[str, tuple[ReasoningFormat, bool, str, list[Found]]] = {
    "opened by the model": (THINK, False, "<think>\nHm.\n</think>\n\nHi.", [reasoning("Hm."), text("Hi.")]),
    "opened by the prompt": (THINK, True, "\nHm.\n</think>\n\nHi.", [reasoning("Hm."), text("Hi.")]),
    "opened by both": (THINK, True, "\n<think>Hm.</think>Hi.", [reasoning("Hm."), text("Hi.")]),
    "not opened": (THINK, False, "\nHi.", [text("Hi.")]),
    "empty": (THINK, False, "<think>\n\n</think>\n\nHi.", [text("Hi.")]),
    "white space inside stays": (THINK, True, " a\n\n b \n</think>c", [reasoning("a\n\n b"), text("c")]),
    "the end marker in pieces, then JSON": (
        THINK,
        True,
        'an idea.</think>{"ok":1}',
        [reasoning("an idea."), text('{"ok":1}')],
    ),
    "a call right after it": (THINK, False, f"<think>x</think>\n\n{CALL}", [reasoning("x"), call("now", "{}")]),
    "calls inside are reasoning": (THINK, True, f"{CALL}</think>Hi.", [reasoning(CALL), text("Hi.")]),
    "markers in the answer are text": (
        THINK,
        False,
        "Write <think>x</think>.",
        [text("Write <think>x</think>.")],
    ),
    "cut inside": (THINK, True, "Hm, so \n", [reasoning("Hm, so")]),
    "cut in the end marker": (THINK, True, "Hm.</thi", [reasoning("Hm.</thi")]),
    "cut in the opening marker": (THINK, False, "<thi", [text("<thi")]),
    "cut after it": (THINK, True, "Hm.</think>\n", [reasoning("Hm.")]),
    "nothing at all": (THINK, False, "\n", []),
    "Mistral": (REASONING["mistral"], False, "[THINK]Hm.[/THINK]Hi.", [reasoning("Hm."), text("Hi.")]),
    "custom markers": (
        SPOKEN,
        False,
        "Here is my thought process: Hm.\n\nHere is my response: Hi.",
        [reasoning("Hm."), text("Hi.")],
    ),
}
each_case = pytest.mark.parametrize(("markers", "opened", "generation", "expected"), CASES.values(), ids=CASES.keys())


def parser(markers: ReasoningFormat, opened: bool) -> ReasoningParser:
    return ReasoningParser(markers, HermesParser(FUNCTIONS), opened=opened)


@each_case
def test_a_generation_in_one_piece(
    markers: ReasoningFormat, opened: bool, generation: str, expected: list[Found]
) -> None:
    assert found(run(parser(markers, opened), [generation])) == expected


@each_case
def test_a_generation_character_by_character(
    markers: ReasoningFormat, opened: bool, generation: str, expected: list[Found]
) -> None:
    assert found(run(parser(markers, opened), generation)) == expected


@each_case
@settings(max_examples=20)
@given(positions=st.lists(st.integers(0, 60), max_size=8))
def test_a_generation_split_at_random(
    markers: ReasoningFormat, opened: bool, generation: str, expected: list[Found], positions: list[int]
) -> None:
    assert found(run(parser(markers, opened), split_at(generation, positions))) == expected


def test_markup_of_a_call_in_pieces_after_reasoning_is_no_text() -> None:
    pieces = ["<think>", "x", "</think>", "\n\n<tool", '_call>{"name":"now","arguments":{}}</tool_call>']
    assert found(run(parser(THINK, False), pieces)) == [reasoning("x"), call("now", "{}")]


def test_an_end_marker_over_pieces_is_no_text() -> None:
    pieces = ["…idea.", "<", "/think>{", '"ok":1}']
    assert found(run(parser(THINK, True), pieces)) == [reasoning("…idea."), text('{"ok":1}')]


FRAGMENTS = ("<think>", "</think>", "<", "/", "think>", " ", "\n", "alpha", "beta", "{")


@given(
    st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join),
    st.booleans(),
    st.lists(st.integers(0, 80), max_size=8),
)
def test_only_markers_and_white_space_are_dropped(generation: str, opened: bool, positions: list[int]) -> None:
    segments = run(ReasoningParser(THINK, PlainText(), opened=opened), split_at(generation, positions))
    rest = generation.lstrip()
    if opened or rest.startswith("<think>"):
        thought, _, rest = rest.removeprefix("<think>").partition("</think>")
        expected = [reasoning(thought.strip())] if thought.strip() else []
    else:
        expected = []
    rest = rest.lstrip()
    assert found(segments) == expected + ([text(rest)] if rest else [])


MISTRAL: dict[str, tuple[str, list[Found]]] = {
    "an end too many": ("[THINK]Hm.[/THINK]Hi[/THINK] there", [reasoning("Hm."), text("Hi there")]),
    "twice": ("[THINK]A[/THINK]B[THINK]C[/THINK]D", [reasoning("A"), text("B"), reasoning("C"), text("D")]),
    "after text": ("B [THINK]\nC", [text("B "), reasoning("C")]),
    "a call before its end": ("[THINK]A[TOOL_CALLS]now[ARGS]{}", [reasoning("A"), call("now", "{}")]),
    "a token of a call in it": ("[THINK]A[ARGS]B[/THINK]", [reasoning("AB")]),
    "in a string of a call": (
        '[TOOL_CALLS]shell[ARGS]{"cmd": "ls[THINK]A[/THINK]',
        [call("shell", '{"cmd": "ls"}'), reasoning("A")],
    ),
    "half of a token before one": ("[/TH[/THINK]INK]", [text("[/TH INK]")]),
}


@pytest.mark.parametrize(("generation", "expected"), MISTRAL.values(), ids=MISTRAL.keys())
def test_special_tokens_of_reasoning_are_never_text(generation: str, expected: list[Found]) -> None:
    for pieces in ([generation], [*generation]):
        inner = FORMATS["mistral"].make_parser(FUNCTIONS)
        assert found(run(ReasoningParser(REASONING["mistral"], inner, opened=False), pieces)) == expected


@pytest.mark.parametrize(
    ("name", "call_begun"),
    [
        ("minimax_m2", '<minimax:tool_call><invoke name="get_weather"><parameter name="city">'),
        ("gemma4", '<|tool_call>call:get_weather{city:<|"|>'),
    ],
)
def test_special_tokens_of_reasoning_end_a_bare_value(name: str, call_begun: str) -> None:
    reading = ReasoningParser(REASONING["mistral"], FORMATS[name].make_parser(FUNCTIONS), opened=False)
    expected = [call("get_weather", '{"city": "Paris"}'), reasoning("Hm."), text("Hi.")]
    assert found(run(reading, f"{call_begun}Paris[THINK]Hm.[/THINK]Hi.")) == expected


def test_special_tokens_of_reasoning_are_no_text_without_functions() -> None:
    reader = ReasoningParser(REASONING["mistral"], PlainText(), opened=False)
    assert found(run(reader, ["A[/THINK]B", "[THINK]C"])) == [text("AB"), reasoning("C")]


def test_reasoning_comes_as_it_is_generated() -> None:
    reader = parser(THINK, True)
    arrived = [reader.feed(character) for character in "ab c<d"]
    assert ["".join(text for _, text in segments) for segments in arrived] == ["a", "b", "", " c", "", "<d"]


def test_the_answer_comes_as_it_is_generated() -> None:
    reader = parser(THINK, True)
    reader.feed("x</think>")
    assert reader.feed("Hi") == [(TEXT, "Hi")]


@pytest.mark.parametrize(
    ("name", "prompt", "opened"),
    [
        ("think", "<|im_start|>assistant\n<think>\n", True),
        ("think", "<|im_start|>assistant\n", False),
        ("think", "<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        ("think", "<|im_start|>user\n<think><|im_end|>assistant\n", False),
        ("deepseek_r1", "<｜User｜>Hi<｜Assistant｜>", True),
        ("deepseek_r1", "<｜User｜>Hi<｜Assistant｜><think>\n", True),
        ("deepseek_r1", "<｜User｜>Hi<｜Assistant｜><think>\n\n</think>\n", False),
        ("mistral", "[/INST]", False),
    ],
)
def test_the_prompt_tells_whether_it_opened_the_reasoning(name: str, prompt: str, opened: bool) -> None:
    assert REASONING[name].opened_by(prompt) is opened


@pytest.mark.parametrize(("template", "name"), REASONING_TEMPLATES.items())
def test_a_template_shows_its_markers(template: str, name: str | None) -> None:
    assert detect_reasoning(template) == name


def test_harmony_has_its_reasoning_in_the_format() -> None:
    template = "{{ '<|start|>assistant<|channel|>analysis<|message|>' }}"
    assert detect_format(template) == "harmony"
    assert detect_reasoning(template) is None
    segments = run(FORMATS["harmony"].make_parser({}), ["<|channel|>analysis<|message|>Hm.<|end|>"])
    assert found(segments) == [reasoning("Hm.")]


def test_markers_must_be_visible() -> None:
    assert REASONING["mistral"].markers == ("[THINK]", "[/THINK]")
