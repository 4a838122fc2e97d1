"""The incremental JSON scanner: what it passes on, where a value ends, and what is no JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.generation.formats.pythonic import PythonScanner
from sidecar.generation.json_scanner import JsonScanner
from sidecar.generation.source import Source
from tests.core.splits import split_at

Scanner = type[JsonScanner]


def scan(scanner: Scanner, pieces: list[str]) -> tuple[bool, str, str]:
    """Whether the pieces begin with a whole value, what was passed on, and what was left."""
    source = Source()
    passed: list[str] = []
    steps = scanner(source).value(passed.append)
    coming = iter(pieces)
    try:
        for piece in coming:
            source.feed(piece)
            next(steps)
        source.end()
        next(steps)
    except StopIteration as stop:
        return stop.value, "".join(passed), source.take_rest() + "".join(coming)
    raise AssertionError("a scan goes on after the end")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
layouts = st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}])
cuts = st.lists(st.integers(0, 200), max_size=10)


@given(value=values, layout=layouts, positions=cuts)
def test_a_value_is_passed_on_as_it_is(value: Any, layout: dict[str, Any], positions: list[int]) -> None:
    document = json.dumps(value, **layout)
    whole, passed, left = scan(JsonScanner, split_at(document + "]x", positions))
    assert (whole, passed, left) == (True, document, "]x")


@given(value=values, positions=cuts)
def test_the_beginning_of_a_value_is_passed_on_and_not_whole(value: Any, positions: list[int]) -> None:
    document = json.dumps([value])
    for end in range(len(document)):
        assert scan(JsonScanner, split_at(document[:end], positions)) == (False, document[:end], "")


@given(value=values, positions=cuts)
def test_values_of_python_become_json(value: Any, positions: list[int]) -> None:
    document = repr(value)
    whole, passed, left = scan(PythonScanner, split_at(document + ")", positions))
    assert (whole, left) == (True, ")")
    assert json.loads(passed) == value


@given(text=st.text('{}[]",:\\u0019eE+-.truefalsn \n', max_size=20).map(str.lstrip), positions=cuts)
def test_what_is_taken_for_json_is_json(text: str, positions: list[int]) -> None:
    whole, passed, left = scan(JsonScanner, split_at(text, positions))
    if whole:
        json.loads(passed)
    else:
        with pytest.raises(ValueError):
            json.loads(text, strict=False)
    assert (whole, passed, left) == scan(JsonScanner, [text])


@pytest.mark.parametrize(
    ("text", "passed", "left"),
    [
        ("", "", ""),
        ("[01]", "[0", "1]"),
        ("-x", "-", "x"),
        ("1.x", "1.", "x"),
        ("1e+x", "1e+", "x"),
        ("nul!", "", "nul!"),
        ("True", "", "True"),
        ("{'a':1}", "{", "'a':1}"),
        ('{"a" 1}', '{"a" ', "1}"),
        ('{"a":1,}', '{"a":1,', "}"),
        ("[1,]", "[1,", "]"),
        ("[1}", "[1", "}"),
        ("[,1]", "[", ",1]"),
        (r'"\x41"', '"', r'\x41"'),
        (r'"\u12g4"', '"', r'\u12g4"'),
        ("NaN", "", "NaN"),
    ],
)
def test_a_scan_stops_where_the_value_breaks(text: str, passed: str, left: str) -> None:
    assert scan(JsonScanner, [*text]) == (False, passed, left)


def test_control_characters_in_strings_are_escaped() -> None:
    assert scan(JsonScanner, ['"a\n\tb\x00"']) == (True, r'"a\n\tb\u0000"', "")
