"""``python -m bench.output``: what parsing generated text costs per character, and whether that grows with the answer.

Each generation is a text followed by a call with one long argument, both half of the length, in pieces of four
characters as tokens have them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from sidecar.generation.coroutine import PlainText
from sidecar.generation.formats import FORMATS
from sidecar.generation.formats.forced import ForcedParser
from sidecar.generation.reasoning import REASONING, ReasoningParser
from sidecar.generation.segments import Parser

SIZES = (1_000, 10_000, 100_000, 1_000_000)
"""Characters of a generation."""
PIECE = 4
PROSE = 'The <quick> brown fox [1] jumps over "lazy" dogs; {twice}.\n'
FUNCTIONS = {"f": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "object"}}}}

Generation = Callable[[str], str]
"""A generation of a text and a call, made of half of its length of prose."""


def _arguments(prose: str) -> str:
    return json.dumps({"a": prose})


GENERATIONS: dict[str, tuple[Callable[[], Parser], Generation]] = {
    "plain text": (PlainText, lambda prose: prose + prose),
    "reasoning": (
        lambda: ReasoningParser(REASONING["think"], PlainText(), opened=True),
        lambda prose: f"{prose}</think>{prose}",
    ),
    "hermes": (
        lambda: FORMATS["hermes"].make_parser(FUNCTIONS),
        lambda prose: f'{prose}<tool_call>{{"name": "f", "arguments": {_arguments(prose)}}}</tool_call>',
    ),
    "hermes, arguments first": (
        lambda: FORMATS["hermes"].make_parser(FUNCTIONS),
        lambda prose: f'{prose}<tool_call>{{"arguments": {_arguments(prose)}, "name": "f"}}</tool_call>',
    ),
    "hermes, small values": (
        lambda: FORMATS["hermes"].make_parser(FUNCTIONS),
        lambda prose: f'{prose}<tool_call>{{"name": "f", "arguments": {{"a": [{"10, " * (len(prose) // 4)}1]}}}}',
    ),
    "hermes, broken markup": (
        lambda: FORMATS["hermes"].make_parser(FUNCTIONS),
        lambda prose: '<tool_call>{"name": "f", "arguments": "' * (len(prose) // 20),
    ),
    "qwen_xml": (
        lambda: FORMATS["qwen_xml"].make_parser(FUNCTIONS),
        lambda prose: (
            f"{prose}<tool_call>\n<function=f>\n<parameter=a>\n{prose}\n</parameter>\n</function>\n</tool_call>"
        ),
    ),
    "qwen_xml, an object": (
        lambda: FORMATS["qwen_xml"].make_parser(FUNCTIONS),
        lambda prose: f"{prose}<function=f>\n<parameter=b>\n{_arguments(prose)}\n</parameter>\n</function>\n",
    ),
    "llama_json": (
        lambda: FORMATS["llama_json"].make_parser(FUNCTIONS),
        lambda prose: f'{prose}<|python_tag|>{{"name": "f", "parameters": {_arguments(prose)}}}',
    ),
    "pythonic": (
        lambda: FORMATS["pythonic"].make_parser(FUNCTIONS),
        lambda prose: f"{prose}<|python_start|>[f(a={prose!r})]<|python_end|>",
    ),
    "mistral": (
        lambda: FORMATS["mistral"].make_parser(FUNCTIONS),
        lambda prose: f"{prose}[TOOL_CALLS]f[ARGS]{_arguments(prose)}",
    ),
    "deepseek": (
        lambda: FORMATS["deepseek"].make_parser(FUNCTIONS),
        lambda prose: f"{prose}<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{_arguments(prose)}",
    ),
    "harmony": (
        lambda: FORMATS["harmony"].make_parser(FUNCTIONS),
        lambda prose: (
            f"<|channel|>analysis<|message|>{prose}<|end|><|start|>assistant<|channel|>commentary to=functions.f"
            f"<|message|>{_arguments(prose)}<|call|>"
        ),
    ),
    "forced": (
        lambda: ForcedParser(FUNCTIONS),
        lambda prose: f'{{"name": "f", "arguments": {_arguments(prose + prose)}}}',
    ),
}


def nanoseconds_per_character(make_parser: Callable[[], Parser], generation: str) -> float:
    """The best of several runs; processor time."""
    pieces = [generation[at : at + PIECE] for at in range(0, len(generation), PIECE)]
    runs = max(5, min(20, 1_000_000 // len(generation)))
    return min(_seconds(make_parser(), pieces) for _ in range(runs)) / len(generation) * 1e9


def _seconds(parser: Parser, pieces: list[str]) -> float:
    start = time.process_time()
    for piece in pieces:
        parser.feed(piece)
    parser.end()
    return time.process_time() - start


def main() -> None:
    """Print one line per kind of generation, with a column per length."""
    print(f"ns per character, pieces of {PIECE}".ljust(32), *(f"{size:>10,}" for size in SIZES))
    for name, (make_parser, generation) in GENERATIONS.items():
        prose = {size: (PROSE * (size // 2 // len(PROSE) + 1))[: size // 2] for size in SIZES}
        costs = [nanoseconds_per_character(make_parser, generation(prose[size])) for size in SIZES]
        print(name.ljust(32), *(f"{cost:>10.0f}" for cost in costs))


if __name__ == "__main__":
    main()
