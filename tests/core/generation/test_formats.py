"""Tool-call formats: scripted generations over any split, and that no input is lost or makes a parser fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.generation.formats import FORMATS, detect_format
from sidecar.generation.formats.forced import ForcedParser
from sidecar.generation.segments import ArgumentsDelta, CallOpened, Parser, TextDelta
from sidecar.generation.stops import StopStrings
from tests.core.generation.generations import GENERATIONS, NOW, PARIS, WEATHER
from tests.core.generation.segments_kit import FUNCTIONS, Found, call, found, run, text, text_of
from tests.core.splits import split_at

PARSERS: dict[str, Callable[..., Parser]] = {
    **{name: known.make_parser for name, known in FORMATS.items()},
    "forced": ForcedParser,
}
each_parser = pytest.mark.parametrize("name", PARSERS)
each_generation = pytest.mark.parametrize(
    ("name", "generation", "expected"),
    [
        pytest.param(name, generation, expected, id=f"{name}: {title}")
        for name, generations in GENERATIONS.items()
        for title, (generation, expected) in generations.items()
    ],
)
cuts = st.lists(st.integers(0, 300), max_size=12)


def read(name: str, *pieces: str) -> list[Found]:
    return found(run(PARSERS[name](FUNCTIONS), pieces))


def test_every_format_is_scripted() -> None:
    assert GENERATIONS.keys() == PARSERS.keys()


@each_generation
def test_a_generation_in_one_piece(name: str, generation: str, expected: list[Found]) -> None:
    assert read(name, generation) == expected


@each_generation
def test_a_generation_character_by_character(name: str, generation: str, expected: list[Found]) -> None:
    assert read(name, *generation) == expected


@each_generation
def test_a_generation_with_empty_pieces_cut_at_each_place(name: str, generation: str, expected: list[Found]) -> None:
    for at in range(len(generation)):
        assert read(name, "", generation[:at], "", generation[at:]) == expected


@each_generation
@settings(max_examples=20)
@given(positions=cuts)
def test_a_generation_split_at_random(name: str, generation: str, expected: list[Found], positions: list[int]) -> None:
    assert read(name, *split_at(generation, positions)) == expected


WORDS = ("alpha", "beta", "gamma")
FRAGMENTS = [
    *WORDS,
    *sorted({marker for known in FORMATS.values() for marker in known.markers}),
    *(piece for generations in GENERATIONS.values() for piece, _ in generations.values()),
    *(
        " ",
        "\n",
        "<",
        "[",
        "{",
        "}",
        "]",
        ";",
        ",",
        "(",
        ")",
        "=",
        "<tool_",
        "[TOOL_",
        "<|",
        "```json",
        "now",
        "function",
    ),
    *(WEATHER[:at] for at in (1, 8, 20, 36, 50, -2, -1)),
]
noise = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=8).map("".join)
without_markup = [name for name in PARSERS if name != "harmony"]


@each_parser
@given(generation=noise, positions=cuts)
def test_any_text_is_read_alike_in_any_pieces(name: str, generation: str, positions: list[int]) -> None:
    assert read(name, *split_at(generation, positions)) == read(name, generation)


@pytest.mark.parametrize("name", without_markup)
@given(generation=noise)
def test_all_is_text_when_no_function_may_be_called(name: str, generation: str) -> None:
    segments = run(PARSERS[name]({}), [generation])
    assert segments == ([TextDelta(generation.lstrip())] if generation.strip() else [])


@each_parser
@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), data=st.data())
def test_no_word_is_lost_between_markers_and_calls(name: str, words: list[str], data: st.DataObject) -> None:
    markers = ("", " ", "<", "[", *FORMATS[name].markers) if name in FORMATS else ("", " ")
    # A name after these stands in a header, which is markup.
    markers = tuple(marker for marker in markers if marker not in ("<|start|>", "<|channel|>", "<|constrain|>"))
    calls = [generation for generation, parts in GENERATIONS[name].values() if parts and parts[-1][0] == "call"]
    between = st.sampled_from((*markers, *calls))
    generation = "".join(word + data.draw(between) for word in words)
    segments = run(PARSERS[name](FUNCTIONS), [generation])
    kept = "".join(segment[0] for segment in segments if isinstance(segment, TextDelta | ArgumentsDelta))
    assert re.findall("|".join(WORDS), kept) == words


@each_parser
@given(generation=st.text("ab <[{|", max_size=60))
def test_at_most_a_marker_is_held_back(name: str, generation: str) -> None:
    parser = PARSERS[name](FUNCTIONS)
    shown = "".join(text_of(segment) for character in "x" + generation for segment in parser.feed(character))
    longest = max(map(len, FORMATS[name].markers), default=0) if name in FORMATS else 0
    assert len("x" + generation) - len(shown) <= longest


def test_arguments_come_as_they_are_generated() -> None:
    parser = PARSERS["hermes"](FUNCTIONS)
    generation = f"<tool_call>{WEATHER}"
    arrived = [parser.feed(character) for character in generation]
    begin = generation.index(PARIS)
    assert arrived[begin] == [CallOpened("get_weather"), ArgumentsDelta("{")]
    assert arrived[begin + 1 : begin + 10] == [[ArgumentsDelta(character)] for character in PARIS[1:10]]


def test_a_string_parameter_of_the_xml_format_comes_as_it_is_generated() -> None:
    parser = PARSERS["qwen_xml"](FUNCTIONS)
    parser.feed("<tool_call><function=get_weather><parameter=city>\n")
    assert [parser.feed(character) for character in 'a"'] == [[ArgumentsDelta("a")], [ArgumentsDelta('\\"')]]


def test_parallel_calls_stay_apart() -> None:
    generation = (
        '<tool_call>{"name":"now","arguments":{"a":1}}</tool_call><tool_call>{"name":"now","arguments":{"b":2}}'
    )
    calls = [json.loads(arguments) for _, (_, arguments) in read("hermes", generation)]
    assert calls == [{"a": 1}, {"b": 2}]


@each_parser
def test_a_stop_string_in_pieces_is_no_text(name: str) -> None:
    stops, parser = StopStrings(["<|im_end|>"]), PARSERS[name](FUNCTIONS)
    assert found(run(parser, map(stops.feed, ["done", "<|im_", "end|>"]))) == [text("done")]
    assert stops.matched


def test_a_stop_string_after_a_call_is_no_text() -> None:
    stops, parser = StopStrings(["<|im_end|>"]), PARSERS["hermes"](FUNCTIONS)
    pieces = map(stops.feed, [f"<tool_call>{NOW}</tool_call><", "|im_end|>"])
    assert found(run(parser, pieces)) == [call("now", "{}")]


def test_deep_nesting_is_read() -> None:
    depth = 100_000
    nested = '{"a": ' + "[" * depth + "]" * depth + "}"
    segments = run(PARSERS["hermes"](FUNCTIONS), [f'<tool_call>{{"name": "now", "arguments": {nested}}}'])
    assert segments[1] == ArgumentsDelta(nested)


TEMPLATES = {
    "hermes": """{{ '<tool_call>\\n{"name": "' }}{{ call.name }}{{ '", "arguments": ' }}{{ call.arguments }}""",
    "qwen_xml": "{{ '<tool_call>\\n<function=' + call.name + '>\\n' }}{{ '<parameter=' + name + '>\\n' }}",
    "llama_json": """{{ '{"name": function name, "parameters": dictionary of argument name and its value}.' }}""",
    "pythonic": "{{ '<|python_start|>[' }}{{ call.name }}(",
    "mistral": "{{ '[TOOL_CALLS]' }}{{ call.name }}{{ '[ARGS]' }}",
    "deepseek": "{{ '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + call.name }}",
    "harmony": "{{ '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}",
}


@pytest.mark.parametrize(("name", "template"), TEMPLATES.items())
def test_a_template_shows_its_format(name: str, template: str) -> None:
    assert detect_format(template) == name


def test_every_format_is_shown_by_a_template() -> None:
    assert TEMPLATES.keys() == FORMATS.keys()


@pytest.mark.parametrize(
    "template", ["", "{{ message.content }}", "<tool_call>{{ name }}\n<arg_key>{{ key }}</arg_key>"]
)
def test_other_templates_show_none(template: str) -> None:
    assert detect_format(template) is None


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_names_the_markers_that_its_generations_need(name: str) -> None:
    generations = "".join(generation for generation, _ in GENERATIONS[name].values())
    assert all(marker in generations for marker in FORMATS[name].markers)
