"""The incremental JSON scanner: what it passes on, where a value ends, and what is no JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.generation.json_scanner import JsonScanner, PythonScanner
from sidecar.generation.source import Source
from tests.core.generation.segments_kit import refuse
from tests.core.splits import split_at

Scanner = type[JsonScanner]


def scan(scanner: Scanner, pieces: list[str], *, cut: bool = False) -> tuple[bool, str, str]:
    """Whether the pieces begin with a whole value, what was passed on, and what was left."""
    source = Source()
    passed: list[str] = []
    steps = scanner(source).value(passed.append)
    coming = iter(pieces)
    try:
        for piece in coming:
            source.feed(piece)
            next(steps)
        source.end(cut)
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
def test_the_beginning_of_a_value_is_passed_on_where_it_is_cut(value: Any, positions: list[int]) -> None:
    document = json.dumps([value])
    for end in range(len(document)):
        whole, passed, _ = scan(JsonScanner, split_at(document[:end], positions), cut=True)
        assert not whole
        assert document.startswith(passed)


@given(value=values, positions=cuts)
def test_the_beginning_of_a_value_is_closed_where_the_model_ended_it(value: Any, positions: list[int]) -> None:
    document = json.dumps([value])
    for end in range(len(document)):
        whole, passed, _ = scan(JsonScanner, split_at(document[:end], positions))
        assert not whole
        assert passed == "" or isinstance(json.loads(passed), list)


@given(value=values, positions=cuts)
def test_values_of_python_become_json(value: Any, positions: list[int]) -> None:
    document = repr(value)
    whole, passed, left = scan(PythonScanner, split_at(document + ")", positions))
    assert (whole, left) == (True, ")")
    assert json.loads(passed) == value


@given(text=st.text("{}[]()\",:'\\u0019eE+-.truefalsnTN \n", max_size=20).map(str.lstrip), positions=cuts)
def test_what_is_passed_on_is_json(text: str, positions: list[int]) -> None:
    for scanner in (JsonScanner, PythonScanner):
        whole, passed, left = scan(scanner, split_at(text, positions))
        if whole or passed:
            json.loads(passed, parse_constant=refuse)
        assert (whole, passed, left) == scan(scanner, [text])


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ('{"a":1,}', '{"a":1}'),
        ("[1 , ]", "[1 ]"),
        ("""{'a':'"'}""", r'{"a":"\""}'),
        ("(1,)", "[1]"),
        ("()", "[]"),
        ("[True,False,None,NaN,-Infinity,inf]", "[true,false,null,null,null,null]"),
        ("[.5,5.,+1,1_000,-1.5e-3,0,-0.0]", "[0.5,5.0,1,1000,-1.5e-3,0,-0.0]"),
        ('{"a":[1,{"b":[2}}', '{"a":[1,{"b":[2]}]}'),
        (r'"C:\Users\me \d \x41 \u12g4 \!"', r'"C:\\Users\\me \\d \\x41 \\u12g4 \\!"'),
        (r"'it\'s'", '''"it's"'''),
        ('"a\n\tb\x00"', r'"a\n\tb\u0000"'),
    ],
)
def test_a_slip_is_repaired(text: str, passed: str) -> None:
    assert scan(JsonScanner, [*text]) == scan(JsonScanner, [text]) == (True, passed, "")


@pytest.mark.parametrize(
    ("text", "passed", "left"),
    [
        ("", "", ""),
        ("oops", "", "oops"),
        ("[01]", "", "01]"),
        ("[1, 1.x]", "[1]", "1.x]"),
        ("[1, nul!", "[1]", "nul!"),
        ('{"a" 1}', "", "1}"),
        ('{"a": 1, "b" 1}', '{"a": 1}', "1}"),
        ('{"a": {"b": [1, "x", oops]}}', '{"a": {"b": [1, "x"]}}', "oops]}}"),
        ('{"a": [oops', "", "oops"),
        ("[,1]", "", ",1]"),
        ("[1,,2]", "[1]", ",2]"),
        ('["a', '["a"]', ""),
        ('["a\\', r'["a\\"]', ""),
        ("1" * 500, "", "1" * 500),
    ],
)
def test_a_broken_value_is_closed_where_it_breaks(text: str, passed: str, left: str) -> None:
    assert scan(JsonScanner, [*text]) == scan(JsonScanner, [text]) == (False, passed, left)


def test_a_wall_ends_a_string() -> None:
    source = Source()
    source.feed('{"a": "b<|end|>')
    passed: list[str] = []
    with pytest.raises(StopIteration):
        next(JsonScanner(source, ("<|end|>",)).value(passed.append))
    assert ("".join(passed), source.take_rest()) == ('{"a": "b"}', "<|end|>")
