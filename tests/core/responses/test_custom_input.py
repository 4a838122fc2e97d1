"""A custom tool's input out of the arguments that a model writes: the same for any split, as soon as it is known."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.responses.custom_input import CustomInput, arguments_of


def told(pieces: list[str]) -> str:
    reading = CustomInput()
    return "".join([reading.feed(piece) for piece in pieces]) + reading.end()


def split(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, *(cut % (len(text) + 1) for cut in cuts), len(text)})
    return [text[start:end] for start, end in pairwise(places)]


@given(text=st.text(), cuts=st.lists(st.integers(0, 500)), ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_any_text_is_told_in_any_split(text: str, cuts: list[int], ascii_only: bool, indent: int | None) -> None:
    written = json.dumps({"input": text}, ensure_ascii=ascii_only, indent=indent)
    assert told(split(written, cuts)) == text
    assert told([arguments_of(text)]) == text


@given(text=st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cs", "Cc"])))
def test_what_needs_no_look_ahead_is_told_at_once(text: str) -> None:
    reading = CustomInput()
    assert reading.feed('{"input": "' + text) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("{}", ""),
        ('{"command": "ls -l"}', "ls -l"),
        ('{"a": "x", "b": "y"}', '{"a": "x", "b": "y"}'),
        ('{"input": {"a": 1}}', '{"input": {"a": 1}}'),
        ('{"input": "a", "more": "b"}', "a"),
        ('{"input": "\\ud83d"}', "\ufffd"),
        ('{"input": "\\ude00\\ud83d\\n"}', "\ufffd\ufffd\n"),
        ('{"input": "\\ud83d\\ude00"}', "😀"),
    ],
)
def test_arguments_of_another_form_are_told_as_well_as_they_can_be(arguments: str, text: str) -> None:
    assert told([arguments]) == text
    assert told(list(arguments)) == text


@pytest.mark.parametrize("cut", ["", "{", '{"inp', '{"input": ', '{"input": "ab\\u00'])
def test_what_was_cut_has_nothing_of_its_markup(cut: str) -> None:
    reading = CustomInput()
    assert reading.feed(cut) + (reading.end() if "ab" not in cut else "") == ("ab" if "ab" in cut else "")
