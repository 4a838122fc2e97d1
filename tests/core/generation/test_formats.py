"""Tool-call formats: scripted generations over any split, and that no input is lost or makes a parser fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.generation.coroutine import CoroutineParser
from sidecar.generation.formats import FORMATS, detect_format
from sidecar.generation.formats.forced import ForcedParser
from sidecar.generation.segments import ARGUMENTS, CALL, REASONING, TEXT
from sidecar.generation.stops import StopStrings
from tests.core.generation.generations import GENERATIONS, NOW, WEATHER
from tests.core.generation.segments_kit import FUNCTIONS, Found, call, found, run, text
from tests.core.generation.slips import SLIPS
from tests.core.generation.templates import TEMPLATES
from tests.core.splits import split_at

PARSERS: dict[str, Callable[..., CoroutineParser]] = {
    **{name: known.make_parser for name, known in FORMATS.items()},
    "forced": ForcedParser,
}
each_parser = pytest.mark.parametrize("name", PARSERS)
each_generation = pytest.mark.parametrize(
    ("name", "generation", "cut", "expected"),
    [
        pytest.param(name, generation, title.startswith("cut"), expected, id=f"{name}: {title}")
        for name, generations in [*GENERATIONS.items(), *SLIPS.items()]
        for title, (generation, expected) in generations.items()
    ],
)
some_examples = settings(max_examples=40)
"""Enough for a property that is tried on every format."""
cuts = st.lists(st.integers(0, 300), max_size=12)


def read(name: str, *pieces: str, cut: bool = False) -> list[Found]:
    return found(run(PARSERS[name](FUNCTIONS), pieces, cut=cut))


def test_every_format_is_scripted() -> None:
    assert GENERATIONS.keys() == PARSERS.keys()


@each_generation
def test_a_generation_in_one_piece(name: str, generation: str, cut: bool, expected: list[Found]) -> None:
    assert read(name, generation, cut=cut) == expected


@each_generation
def test_a_generation_character_by_character(name: str, generation: str, cut: bool, expected: list[Found]) -> None:
    assert read(name, *generation, cut=cut) == expected


@each_generation
def test_a_generation_with_empty_pieces_cut_at_each_place(
    name: str, generation: str, cut: bool, expected: list[Found]
) -> None:
    for at in range(len(generation)):
        assert read(name, "", generation[:at], "", generation[at:], cut=cut) == expected


@each_generation
@settings(max_examples=5)
@given(positions=cuts)
def test_a_generation_split_at_random(
    name: str, generation: str, cut: bool, expected: list[Found], positions: list[int]
) -> None:
    assert read(name, *split_at(generation, positions), cut=cut) == expected


WORDS = ("alpha", "beta", "gamma")
FRAGMENTS = [
    *WORDS,
    *sorted({marker for known in FORMATS.values() for marker in known.markers}),
    *(piece for table in (GENERATIONS, SLIPS) for generations in table.values() for piece, _ in generations.values()),
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
parts = st.builds(
    lambda fragment, begin, length: fragment[begin : begin + length],
    st.sampled_from(FRAGMENTS),
    st.integers(0, 40),
    st.integers(1, 80),
)
noise = st.lists(st.sampled_from(FRAGMENTS) | parts | st.text(max_size=4), max_size=8).map("".join)
without_markup = [name for name in PARSERS if name != "harmony"]


@each_parser
@some_examples
@given(generation=noise, positions=cuts, cut=st.booleans())
def test_any_text_is_read_alike_in_any_pieces(name: str, generation: str, positions: list[int], cut: bool) -> None:
    assert read(name, *split_at(generation, positions), cut=cut) == read(name, generation, cut=cut)


@each_parser
@some_examples
@given(generation=noise, cut=st.booleans())
def test_only_the_token_limit_leaves_a_call_broken(name: str, generation: str, cut: bool) -> None:
    kinds = [kind for kind, _ in read(name, generation, cut=cut)]
    assert "cut" not in (kinds[:-1] if cut else kinds)


@each_parser
@some_examples
@given(generation=noise, cut=st.booleans())
def test_no_special_token_comes_out(name: str, generation: str, cut: bool) -> None:
    parser = PARSERS[name](FUNCTIONS)
    shown = [text for kind, text in run(parser, [generation], cut=cut) if kind in (TEXT, REASONING, ARGUMENTS)]
    assert not [marker for marker in parser.control for text in shown if marker in text]


@pytest.mark.parametrize("name", without_markup)
@some_examples
@given(generation=noise)
def test_all_is_text_when_no_function_may_be_called(name: str, generation: str) -> None:
    parser = PARSERS[name]({})
    shown = "".join(text for _, text in run(parser, [generation]))
    for marker in parser.control:
        generation = generation.replace(marker, "")
    assert "".join(shown.split()) == "".join(generation.split())


@each_parser
@some_examples
@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), data=st.data())
def test_no_word_is_lost_between_markers_and_calls(name: str, words: list[str], data: st.DataObject) -> None:
    markers = ("", " ", "<", "[", *FORMATS[name].markers) if name in FORMATS else ("", " ")
    # A name after these stands in a header, which is markup.
    markers = tuple(marker for marker in markers if marker not in ("<|start|>", "<|channel|>", "<|constrain|>"))
    calls = [generation for generation, parts in GENERATIONS[name].values() if parts and parts[-1][0] == "call"]
    between = st.sampled_from((*markers, *calls))
    generation = "".join(word + data.draw(between) for word in words)
    segments = run(PARSERS[name](FUNCTIONS), [generation])
    kept = "".join(text for kind, text in segments if kind in (TEXT, ARGUMENTS))
    assert re.findall("|".join(WORDS), kept) == words


@each_parser
@some_examples
@given(generation=st.text("ab <[{|", max_size=60))
def test_at_most_a_marker_is_held_back(name: str, generation: str) -> None:
    parser = PARSERS[name](FUNCTIONS)
    shown = "".join(text for character in "x" + generation for _, text in parser.feed(character))
    longest = max(map(len, FORMATS[name].markers), default=0) if name in FORMATS else 0
    assert len("x" + generation) - len(shown) <= longest


def test_arguments_come_as_they_are_generated() -> None:
    parser = PARSERS["hermes"](FUNCTIONS)
    generation = f"<tool_call>{WEATHER}"
    arrived = [parser.feed(character) for character in generation]
    begin = generation.index("Paris")
    assert arrived[begin - 1] == [(CALL, "get_weather"), (ARGUMENTS, '{"city": "')]
    assert arrived[begin : begin + 5] == [[(ARGUMENTS, character)] for character in "Paris"]


def test_a_string_parameter_of_the_xml_format_comes_as_it_is_generated() -> None:
    parser = PARSERS["qwen_xml"](FUNCTIONS)
    parser.feed("<tool_call><function=get_weather><parameter=city>\n")
    assert [parser.feed(character) for character in 'a"'] == [[(ARGUMENTS, "a")], [(ARGUMENTS, '\\"')]]


def test_parallel_calls_stay_apart() -> None:
    generation = (
        '<tool_call>{"name":"shell","arguments":{"a":1}}</tool_call><tool_call>{"name":"shell","arguments":{"b":2}}'
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
    segments = run(PARSERS["hermes"](FUNCTIONS), [f'<tool_call>{{"name": "shell", "arguments": {nested}}}'])
    assert segments[1] == (ARGUMENTS, nested)


@pytest.mark.parametrize(("name", "template"), TEMPLATES.items())
def test_a_template_shows_its_format(name: str, template: str) -> None:
    assert detect_format(template) == name


def test_every_format_is_shown_by_a_template() -> None:
    assert TEMPLATES.keys() == FORMATS.keys()


@pytest.mark.parametrize(
    "template", ["", "{{ message.content }}", "<tool_call>{{ name }}<tool_sep>\n<arg_key>{{ key }}</arg_key>"]
)
def test_other_templates_show_none(template: str) -> None:
    assert detect_format(template) is None


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_names_the_markers_that_its_generations_need(name: str) -> None:
    generations = "".join(generation for generation, _ in GENERATIONS[name].values())
    assert all(marker in generations for marker in FORMATS[name].markers)
