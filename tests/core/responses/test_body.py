"""Request bodies: what is one strict JSON object, and what is refused before anything looks at a value."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.responses import body_bounds
from sidecar.responses.body import parse_json_body
from sidecar.responses.body_bounds import MAX_DEPTH, MAX_DIGITS, MAX_KEY_BYTES, MAX_VALUES, check_bounds
from sidecar.responses.errors import ApiError


def nested(levels: int) -> bytes:
    """An object with arrays inside, ``levels`` deep in all."""
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"", "not valid JSON", id="empty"),
        pytest.param(b'{"a":1', "line 1, column 7", id="cut short"),
        pytest.param(b"[]", "must be a JSON object", id="array"),
        pytest.param(b"null", "must be a JSON object", id="null"),
        pytest.param(b'"a"', "must be a JSON object", id="string"),
        pytest.param(b'{"a":1,"a":2}', "'a' twice", id="duplicate key"),
        pytest.param(b'{"a":[{"b":1,"\\u0062":2}]}', "'b' twice", id="duplicate key, escaped and deep"),
        pytest.param(b'{"a":NaN}', "NaN", id="NaN"),
        pytest.param(b'{"a":-Infinity}', "-Infinity", id="Infinity"),
        pytest.param(b'{"a":1e999}', "too large", id="overflow"),
        pytest.param(b'{"a":' + b"9" * 5000 + b"}", "too large", id="integer of thousands of digits"),
        pytest.param(b'{"a":"\xff"}', "UTF-8", id="invalid UTF-8"),
        pytest.param('{"a":"x"}'.encode("utf-16"), "UTF-8", id="UTF-16"),
        pytest.param(b'{"a":"\xed\xa0\x80"}', "UTF-8", id="surrogate in UTF-8"),
        pytest.param(b'{"a":"\\ud800"}', "surrogate", id="lone surrogate"),
        pytest.param(b'{"\\udc00":1}', "surrogate", id="lone surrogate in a key"),
        pytest.param(b'{"a":"\\udc00\\ud800"}', "surrogate", id="surrogates in the wrong order"),
        pytest.param(b'{"a":"line\nbreak"}', "not valid JSON", id="control character in a string"),
        pytest.param(nested(MAX_DEPTH + 1), "deeper than 64", id="65 levels"),
        pytest.param(b"[" * 1_000_000, "deeper than 64", id="a million levels"),
        pytest.param(b'{"a":1} {"b":2}', "not valid JSON", id="two objects"),
    ],
)
def test_refuses_what_is_not_one_strict_object(body: bytes, words: str) -> None:
    with pytest.raises(ApiError) as refusal:
        parse_json_body(body)
    assert refusal.value.code == "invalid_request"
    assert words in refusal.value.message


@pytest.mark.parametrize(
    ("body", "value"),
    [
        pytest.param(b'\xef\xbb\xbf{"a":1}', {"a": 1}, id="byte order mark"),
        pytest.param(b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}, id="surrogate pair"),
        pytest.param(b'{"a":"\\\\ud800"}', {"a": "\\ud800"}, id="text that looks like an escape"),
        pytest.param(b'{"a":1e308}', {"a": 1e308}, id="largest magnitude"),
        pytest.param(b'{"a":{"b":1},"c":{"b":2}}', {"a": {"b": 1}, "c": {"b": 2}}, id="a key in two objects"),
        pytest.param(b'{"a":"' + b"[" * 100 + b'\\"{"}', {"a": "[" * 100 + '"{'}, id="brackets inside a string"),
    ],
)
def test_reads_what_is(body: bytes, value: dict[str, Any]) -> None:
    assert parse_json_body(body) == value


def test_takes_nesting_up_to_the_limit() -> None:
    assert parse_json_body(nested(MAX_DEPTH)) == json.loads(nested(MAX_DEPTH))


def test_a_message_shows_a_key_cut_and_printable() -> None:
    key = json.dumps("\n" + "k" * 200)
    with pytest.raises(ApiError) as refusal:
        parse_json_body(f"{{{key}:1,{key}:2}}".encode())
    assert len(refusal.value.message) < 200
    assert refusal.value.message.isprintable()


keys = st.text(max_size=100)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(keys, json_values, max_size=5), st.booleans())
def test_agrees_with_json_on_every_strict_object(value: dict[str, Any], ascii_only: bool) -> None:
    assert parse_json_body(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,\\ud8x0 1e9N', max_size=60).map(str.encode))
def test_any_bytes_give_an_object_or_one_refusal(body: bytes) -> None:
    try:
        assert isinstance(parse_json_body(body), dict)
    except ApiError as refusal:
        assert refusal.status == 400


def array(element: bytes, count: int) -> bytes:
    """An object with ``count`` elements in an array: two values more."""
    return b'{"a":[' + b",".join([element] * count) + b"]}"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(array(b"[]", MAX_VALUES), "200000 values", id="empty arrays"),
        pytest.param(array(b"1", MAX_VALUES - 1), "200000 values", id="one number too many"),
        pytest.param(array(b'{"a":[]}', MAX_VALUES // 2), "200000 values", id="objects"),
        pytest.param(b'"' * 4_000_000, "200000 values", id="quotation marks"),
        pytest.param(b"[" + b"," * 4_000_000, "200000 values", id="commas"),
        pytest.param(b"{" + b"]" * 4_000_000, "not valid JSON", id="closing brackets"),
        pytest.param(b'{"a":[' + b"[]" * 4_000_000, "not valid JSON", id="arrays without commas"),
        pytest.param(b'{"' + b"k" * (MAX_KEY_BYTES + 1) + b'" :1}', "4096 bytes", id="long key"),
        pytest.param(b'{"a":{"' + b"\\\\" * MAX_KEY_BYTES + b'"\n:1}}', "4096 bytes", id="long key of escapes"),
        pytest.param(b'{"a":' + b"1" * (MAX_DIGITS + 1) + b"}", "1000 digits", id="long integer"),
        pytest.param(b'{"a":0.' + b"1" * 4_000_000 + b"}", "1000 digits", id="long fraction"),
    ],
)
def test_refuses_what_is_dear_before_it_is_parsed(body: bytes, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "valid JSON" not in words:
        monkeypatch.setattr(json, "loads", None)
    with pytest.raises(ApiError, match=words) as refusal:
        parse_json_body(body)
    assert refusal.value.code == "invalid_request"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(array(b"[]", MAX_VALUES - 2), id="arrays"),
        pytest.param(array(b'{ "a" : 1 }', MAX_VALUES // 2 - 1), id="objects"),
        pytest.param(array(b'"a"', MAX_VALUES - 2), id="strings"),
        pytest.param(b'{"' + b"k" * MAX_KEY_BYTES + b'":"' + b"v" * 10_000 + b'"}', id="a key and a long value"),
        pytest.param(b'{"a":' + b"1" * MAX_DIGITS + b',"b":"' + b"1" * 10_000 + b'"}', id="digits"),
        pytest.param(b'{"a":"' + b'\\",[]{}:' * 200_000 + b'"}', id="all that counts, inside a string"),
    ],
)
def test_takes_what_is_within_the_bounds(body: bytes) -> None:
    assert parse_json_body(body) == json.loads(body)


def count_values(value: Any) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count_values, members))


@given(st.dictionaries(st.text('"\\[]{},: é', max_size=3), json_values, max_size=5), st.sampled_from([None, 2]))
def test_the_values_of_an_object_are_counted_exactly(value: dict[str, Any], indent: int | None) -> None:
    body, values = json.dumps(value, indent=indent).encode(), count_values(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_bounds, "MAX_VALUES", values)
        check_bounds(body)
        patch.setattr(body_bounds, "MAX_VALUES", values - 1)
        with pytest.raises(ApiError, match=re.escape(f"more than {values - 1} values")):
            check_bounds(body)
