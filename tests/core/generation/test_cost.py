"""What a token costs: calls of Python functions, resumed coroutines among them, for each piece that a parser is fed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from sidecar.generation.formats import FORMATS
from sidecar.generation.reasoning import REASONING, ReasoningParser
from sidecar.generation.segments import ARGUMENTS, TEXT, Parser
from sidecar.generation.segments import REASONING as REASONING_TEXT
from sidecar.generation.stops import StopStrings
from tests.core.generation.segments_kit import FUNCTIONS
from tests.core.python_calls import counted_calls

T = TypeVar("T")

WORDS = [" word", " and", " another,", ' "so"', "\nit", " goes."] * 20
THINK = REASONING["think"]
IN_A_STRING = {
    "hermes": '<tool_call>{"name": "get_weather", "arguments": {"city": "',
    "qwen_xml": "<tool_call><function=get_weather><parameter=city>\n",
    "llama_json": '{"name": "get_weather", "parameters": {"city": "',
    "pythonic": '[get_weather(city="',
    "mistral": '[TOOL_CALLS]get_weather[ARGS]{"city": "',
    "deepseek": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "',
    "harmony": '<|channel|>commentary to=functions.get_weather<|message|>{"city": "',
    "kimi_k3": '<|open|>call tool="get_weather"<|sep|><|open|>argument key="city" type="string"<|sep|>',
    "kimi_k2": '<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "',
    "gemma4": '<|tool_call>call:get_weather{city:<|"|>',
    "functiongemma": "<start_function_call>call:get_weather{city:<escape>",
    "deepseek_v41": '<｜DSML｜ invoke name="get_weather"><｜DSML｜ parameter name="city" string="true">',
    "deepseek_v32": '<｜DSML｜invoke name="get_weather"><｜DSML｜parameter name="city" string="true">',
    "gigachat35": '<｜GCML｜invoke name="get_weather"><｜GCML｜parameter name="city" string="true">',
    "step3": '<steptml:invoke name="get_weather"><steptml:parameter name="city">',
    "minimax_m2": '<minimax:tool_call><invoke name="get_weather"><parameter name="city">',
    "seed_oss": "<seed:tool_call><function=get_weather><parameter=city>",
    "longcat": "<longcat_tool_call>get_weather<longcat_arg_key>city</longcat_arg_key><longcat_arg_value>",
    "glm": "<tool_call>get_weather<arg_key>city</arg_key><arg_value>",
    "minicpm5": '<function name="get_weather"><param name="city">',
    "ernie45": '<tool_call>{"name": "get_weather", "arguments": {"city": "',
    "cohere": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "',
    "phi4_mini": 'functools[{"name": "get_weather", "arguments": {"city": "',
    "granite": '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "',
    "nemotron": '<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "',
    "hunyuan": '<tool_calls>[{"name": "get_weather", "arguments": {"city": "',
    "jamba": '<tool_calls>[{"name": "get_weather", "arguments": {"city": "',
    "internlm": '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city": "',
    "apertus": '<|tools_prefix|>[{"get_weather": {"city": "',
    "gigachat3": '<|function_call|>{"name": "get_weather", "arguments": {"city": "',
    "lfm2": '<|tool_call_start|>[get_weather(city="',
    "olmo3": '<function_calls>get_weather(city="',
    "xlam": '[{"name": "get_weather", "arguments": {"city": "',
}
"""The beginning of a call in each format, up to the inside of a string."""
each_format = pytest.mark.parametrize("name", FORMATS)
with_reasoning = pytest.mark.parametrize("reasons", [False, True])


def parser(name: str, reasons: bool) -> Parser:
    inner = FORMATS[name].make_parser(FUNCTIONS)
    if not reasons:
        return inner
    outer = ReasoningParser(THINK, inner, opened=True)
    outer.feed("Hm.</think>")
    return outer


def count_calls(feed: Callable[[str], T], pieces: list[str]) -> tuple[float, list[T]]:
    """The calls that a piece costs in the mean, and what comes of the pieces. The first piece leads in."""
    feed(pieces[0])
    with counted_calls("sidecar.") as calls:
        found = [feed(piece) for piece in pieces[1:]]
    return calls.total() / len(found), found


def calls_per_piece(parser: Parser, pieces: list[str], kind: str) -> float:
    """The calls that a piece costs in the mean. All that comes of it must be of ``kind``."""
    calls, found = count_calls(parser.feed, pieces)
    assert {segment[0] for segments in found for segment in segments} == {kind}
    return calls


@each_format
@with_reasoning
def test_visible_text_costs_four_calls(name: str, reasons: bool) -> None:
    assert calls_per_piece(parser(name, reasons), WORDS, TEXT) <= 4


@each_format
def test_reasoning_costs_four_calls(name: str) -> None:
    reading = ReasoningParser(THINK, FORMATS[name].make_parser(FUNCTIONS), opened=True)
    assert calls_per_piece(reading, WORDS, REASONING_TEXT) <= 4


def test_reasoning_in_the_format_costs_four_calls() -> None:
    reading = parser("harmony", False)
    reading.feed("<|channel|>analysis<|message|>")
    assert calls_per_piece(reading, WORDS, REASONING_TEXT) <= 4


def test_every_format_has_a_string() -> None:
    assert IN_A_STRING.keys() == FORMATS.keys()


@each_format
@with_reasoning
def test_a_string_of_arguments_costs_eight_calls(name: str, reasons: bool) -> None:
    reading = parser(name, reasons)
    reading.feed(IN_A_STRING[name])
    words = [word.replace('"', "").replace("\n", " ") for word in WORDS]
    assert calls_per_piece(reading, words, ARGUMENTS) <= 8


@each_format
def test_the_work_is_linear_whatever_is_written(name: str) -> None:
    beginnings = [IN_A_STRING[name][:length] for length in range(1, len(IN_A_STRING[name]) + 1)]
    text = "".join([*beginnings, *FORMATS[name].markers, "{[(" * 50, '"}' * 50, ", " * 50, "\\" * 50]) * 3
    reading = FORMATS[name].make_parser(FUNCTIONS)
    calls, _ = count_calls(reading.feed, [*text])
    assert calls <= 15


def test_looking_for_stop_strings_costs_one_call() -> None:
    calls, texts = count_calls(StopStrings(["<|im_end|>", "\n\nUser:"]).feed, [" word", " and", " another,"] * 20)
    assert (calls, "".join(texts[:3])) == (1, " and another, word")
