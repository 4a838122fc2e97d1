"""Calls whose arguments are not as their format has them are counted, and no others."""

from __future__ import annotations

import pytest

from sidecar.generation.reasoning import REASONING, ReasoningParser
from tests.core.generation.generations import GENERATIONS
from tests.core.generation.segments_kit import FUNCTIONS, run
from tests.core.generation.slips import SLIPS
from tests.core.generation.test_formats import PARSERS

REPAIRED = {
    ("hermes", "any arguments of a function without parameters"),
    ("hermes", "a line break inside a string"),
    ("hermes", "without the closing brace"),
    ("hermes", "broken after it opened"),
    ("qwen_xml", "broken after it opened"),
    ("pythonic", "broken after it opened"),
    ("kimi_k2", "a string that does not end"),
    ("functiongemma", "a string that does not end"),
    ("gemma4", "a string that does not end"),
}
"""The scripted generations that are not quite right."""


@pytest.mark.parametrize("name", PARSERS)
def test_what_is_as_it_should_be_is_not_counted(name: str) -> None:
    for title, (generation, _) in GENERATIONS[name].items():
        parser = PARSERS[name](FUNCTIONS)
        run(parser, generation, cut=title.startswith("cut"))
        assert parser.repaired_calls == ((name, title) in REPAIRED), title


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("hermes", "backslashes in a path"),
        ("hermes", "escapes that JSON lacks"),
        ("hermes", "a comma too many"),
        ("hermes", "constants of Python"),
        ("hermes", "numbers that JSON lacks"),
        ("hermes", "single quotes and tuples"),
        ("hermes", "a bracket left out"),
        ("hermes", "a broken member"),
        ("llama_json", "a comma too many"),
        ("pythonic", "no end in a string"),
        ("pythonic", "a bracket left out"),
    ],
)
def test_a_slip_counts_once_for_its_call(name: str, title: str) -> None:
    parser = PARSERS[name](FUNCTIONS)
    run(parser, SLIPS[name][title][0])
    assert parser.repaired_calls == 1


def test_each_call_counts_by_itself() -> None:
    slip, well = SLIPS["hermes"]["a comma too many"][0], SLIPS["hermes"]["a fence"][0]
    parser = PARSERS["hermes"](FUNCTIONS)
    run(parser, [slip, well, slip])
    assert parser.repaired_calls == 2


def test_what_is_given_up_counts_for_no_call() -> None:
    parser = PARSERS["hermes"](FUNCTIONS)
    run(parser, ["<tool_call>{'no': 'call',}</tool_call>", SLIPS["hermes"]["a fence"][0]])
    assert parser.repaired_calls == 0


def test_calls_after_reasoning_count_too() -> None:
    parser = ReasoningParser(REASONING["think"], PARSERS["hermes"](FUNCTIONS), opened=True)
    run(parser, ["so</think>", SLIPS["hermes"]["a comma too many"][0]])
    assert parser.repaired_calls == 1
