"""What of a native upstream's answer goes to the client, and what becomes of one that does not end well."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.backends.failure import BackendError
from sidecar.backends.native.reader import MOST_BYTES, JsonReader, StreamReader
from sidecar.responses.marks import BEGUN, Counts
from tests.core.backends.native.streams import (
    MESSAGE,
    TELLING,
    USAGE,
    delta,
    ending,
    event,
    opening,
    response,
    stream,
)
from tests.core.python_calls import counted_calls
from tests.core.splits import split_at
from tests.core.sse import parse


def reader(most: int | None = None) -> StreamReader:
    return StreamReader(TELLING, most)


def read(whole: bytes, cuts: list[int] | None = None) -> tuple[StreamReader, bytes]:
    of = reader()
    passed = b"".join(of.feed(piece) for piece in split_at(whole, cuts or []))
    return of, passed + of.end(whole=True)


def told(passed: bytes) -> list[dict[str, Any]]:
    return [event.data for event in parse(passed) if isinstance(event.data, dict)]


@given(st.lists(st.text(max_size=9), max_size=6), st.lists(st.integers(0, 3000), max_size=20), st.booleans())
def test_any_split_passes_the_same(texts: list[str], cuts: list[int], crlf: bool) -> None:
    whole = stream(*texts)
    written = whole.replace(b"\n", b"\r\n") if crlf else whole
    split, passed = read(written, cuts)
    once, expected = read(whole)
    assert passed == expected
    assert (split.response, split.usage, split.tokens) == (once.response, once.usage, once.tokens)


def test_a_delta_that_comes_alone_is_what_it_is_among_others() -> None:
    deltas = [delta(3, "x"), delta(4, "a" * 40), event("response.x.delta", 5, delta={"a": 1}), delta(6, '"' * 9)]
    alone, together = reader(), reader()
    passed = alone.feed(opening() + delta(2, "x")) + b"".join(map(alone.feed, deltas))
    assert passed == together.feed(opening() + delta(2, "x") + b"".join(deltas))
    assert (alone.mark, alone.next_number) == (together.mark, together.next_number) == (BEGUN | 14, 7)


def test_deltas_pass_byte_for_byte() -> None:
    deltas = [delta(3, 'a "b" \u2028 \\ é'), b'event: response.new.delta\ndata: {"z" : 1.50,  "sequence_number":4}\n\n']
    _, passed = read(opening() + b"".join(deltas) + ending(5))
    assert passed.endswith(b"".join(deltas))


def test_the_response_is_told_as_ours_and_numbers_stay() -> None:
    of, passed = read(stream("hi"))
    created, in_progress, *rest = told(passed)
    for number, (type_, data) in enumerate((("created", created), ("in_progress", in_progress))):
        assert (data["type"], data["sequence_number"]) == (f"response.{type_}", number)
        assert data["response"] == {
            **{"id": "resp_ours", "object": "response", "status": "in_progress", "output": []},
            **{"temperature": 1.0, "usage": None, "model": "v/m", "store": False, "user": None},
        }
    assert [data["sequence_number"] for data in rest] == [2, 3]
    assert of.response is not None
    assert (of.response["id"], of.response["output"], of.response["status"]) == ("resp_ours", [MESSAGE], "completed")
    (last,) = told(of.finish({**of.response, "b3os": 1}))
    assert (last["type"], last["sequence_number"], last["response"]["b3os"]) == ("response.completed", 4, 1)


def test_only_what_is_the_upstream_s_to_tell_is_told() -> None:
    of = StreamReader(replace(TELLING, taken=frozenset({"status", "output"})), None)
    of.feed(opening() + ending(2, temperature=0.5, billing={"payer": "openai"}))
    assert of.response == {**TELLING.defaults, **TELLING.ours, "status": "completed", "output": [MESSAGE]}


def test_usage_is_that_of_the_last_event() -> None:
    of, _ = read(stream("hi"))
    assert of.usage is not None
    assert (of.usage.input_tokens, of.usage.cached_tokens) == (11, 3)
    assert (of.usage.output_tokens, of.usage.reasoning_tokens) == (7, 2)


@pytest.mark.parametrize("usage", [None, "many", {"input_tokens": -1, "output_tokens": True}])
def test_usage_that_cannot_be_counts_nothing(usage: Any) -> None:
    of = reader()
    of.feed(opening() + ending(2, usage=usage))
    assert of.usage is None or of.usage.to_json()["total_tokens"] == 0


def test_the_opening_waits_until_the_model_speaks() -> None:
    of = reader()
    queued = event("response.queued", 0, response=response("queued"))
    assert of.feed(queued + opening() + b": ping\n\n") == b""
    assert (of.begun, of.mark) == (False, 0)
    assert [data["type"] for data in told(of.feed(delta(2, "x")))][:2] == ["response.queued", "response.created"]
    assert (of.begun, of.mark) == (True, BEGUN | 1)


def test_tokens_that_are_not_told_yet_are_estimated() -> None:
    of = reader(most=12)
    of.feed(opening() + delta(2, "x") + delta(3, "y" * 20) + event("response.x.delta", 4, delta={"a": 1}))
    assert of.tokens == 1 + 5 + 1
    of.feed(delta(5, "z" * 400))
    assert Counts.of(of.mark).output_tokens == 12


def test_what_follows_the_end_is_not_read() -> None:
    of = reader()
    of.feed(opening() + ending(2) + delta(3, "more") + b"\xff")
    assert of.stopped
    assert of.failure is None
    assert of.response is not None


def test_the_last_event_may_lack_its_blank_line() -> None:
    of = reader()
    of.feed(stream("hi")[:-2])
    assert not of.stopped
    of.end(whole=True)
    assert of.response is not None


FAILURES = {
    "broken off": (b"", False, "upstream_ended_early"),
    "ended without its last event": (b"", True, "upstream_ended_early"),
    "half an event, broken off": (ending(9)[:-2], False, "upstream_ended_early"),
    "error": (event("error", 9, error={"code": "server_error", "message": "at 10.0.0.7"}), True, "upstream_failed"),
    "flat error": (event("error", 9, code="rate_limit_exceeded", message="org-1"), True, "upstream_limited"),
    "failed": (
        event("response.failed", 9, response=response("failed", error={"code": "context_length_exceeded"})),
        True,
        "upstream_too_long",
    ),
    "failed without words": (
        event("response.failed", 9, response=response("failed", error=None)),
        True,
        "upstream_failed",
    ),
    "no response": (event("response.completed", 9), True, "upstream_not_its_protocol"),
    "no items": (ending(9, output={"a": 1}), True, "upstream_not_its_protocol"),
    "an item without a type": (ending(9, output=[{}]), True, "upstream_not_its_protocol"),
    "no JSON": (b"event: response.completed\ndata: {\n\n", True, "upstream_not_its_protocol"),
    "NaN": (b'event: response.completed\ndata: {"response":{"x":NaN}}\n\n', True, "upstream_not_its_protocol"),
    "deep": (b'event: response.completed\ndata: {"x":' + b"[" * 100_000 + b"\n\n", True, "upstream_not_its_protocol"),
}


@pytest.mark.parametrize(("last", "whole", "failure"), FAILURES.values(), ids=FAILURES)
def test_an_answer_that_does_not_end_well_is_a_failure(last: bytes, whole: bool, failure: str) -> None:
    of = reader()
    passed = of.feed(opening() + delta(2, "x") + last)
    assert parse(passed)[-1].type == "response.output_text.delta"
    with pytest.raises(BackendError) as error:
        of.end(whole)
    assert error.value.failure == failure
    assert "10.0.0.7" not in error.value.message
    assert of.next_number == 3


def test_a_failure_before_the_model_speaks_passes_nothing() -> None:
    of = reader()
    assert of.feed(opening() + event("error", 2, error={"code": "server_error"})) == b""
    assert of.failure is not None
    assert not of.begun


@pytest.mark.parametrize("last", [b"event: x\ndata: {}\n\n", b'event: x\ndata: {"sequence_number": "a"}\n\n'])
def test_an_event_without_a_number_is_followed_by_the_first(last: bytes) -> None:
    of = reader()
    of.feed(last)
    assert of.next_number == 0


def test_half_a_surrogate_pair_can_be_told() -> None:
    of = reader()
    of.feed(ending(0, instructions="a\ud83d"))
    assert of.response is not None
    assert b"a\\ufffd" in of.finish(of.response) or "a\ufffd".encode() in of.finish(of.response)


def test_a_delta_costs_the_same_however_long_the_answer() -> None:
    of = reader()
    of.feed(opening() + delta(2, "x"))
    costs = []
    for number in range(3, 403):
        piece = delta(number, "word ")
        with counted_calls("sidecar") as calls:
            of.feed(piece)
        costs.append(calls.total())
    assert all(one == other for one, other in pairwise(costs))
    assert costs[0] == 3


def json_reader(body: bytes, whole: bool = True) -> JsonReader:
    of = JsonReader(TELLING)
    for piece in split_at(body, [3, 50]):
        assert of.feed(piece) == b""
    of.end(whole)
    return of


def test_a_body_is_told_as_ours() -> None:
    of = json_reader(json.dumps(response("completed", output=[MESSAGE], usage=USAGE)).encode())
    assert of.response is not None
    assert (of.response["id"], of.response["model"], of.response["store"]) == ("resp_ours", "v/m", False)
    assert of.response["output"] == [MESSAGE]
    assert of.usage is not None
    assert of.usage.output_tokens == 7


BODIES = {
    "broken off": (b'{"status"', False, "upstream_ended_early"),
    "no JSON": (b"<html>", True, "upstream_not_its_protocol"),
    "failed": (b'{"status":"failed","error":{"code":"server_error"}}', True, "upstream_failed"),
    "in progress": (b'{"status":"in_progress","output":[]}', True, "upstream_not_its_protocol"),
    "no items": (b'{"status":"completed","output":null}', True, "upstream_not_its_protocol"),
}


@pytest.mark.parametrize(("body", "whole", "failure"), BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_whole_response_is_a_failure(body: bytes, whole: bool, failure: str) -> None:
    with pytest.raises(BackendError) as error:
        json_reader(body, whole)
    assert error.value.failure == failure


def test_an_endless_body_is_given_up() -> None:
    of = JsonReader(TELLING)
    of.feed(b"x" * (MOST_BYTES + 1))
    assert of.failure is not None


JUNK = st.sampled_from(
    [
        ending(4),
        ending(4, output=7),
        ending(4, usage=[1]),
        opening(),
        delta(3, "x"),
        b"\n",
        b"\r\n",
        b"data: ",
        b": c",
        b"\xff\xfe",
        b"event: \n\n",
        b'event: error\ndata: {"error": [1]}\n\n',
        b'event: response.failed\ndata: {"response": 1}\n\n',
        b"event: response.created\ndata: null\n\n",
        b'data: {"type": 7}\n\n',
        b'data: {"type":"response.completed"}\n\n',
        b'event: response.completed\ndata: {"response":{"output":' + b"[" * 400 + b"]" * 400 + b"}}\n\n",
    ]
)


@example(pieces=[delta(3, "x"), b"event: x\ndata: {}\n\n"], cuts=[len(delta(3, "x"))], whole=False)
@given(st.lists(JUNK | st.binary(max_size=9), max_size=10), st.lists(st.integers(0, 3000), max_size=10), st.booleans())
def test_whatever_an_upstream_sends_comes_to_the_same_however_it_is_split(
    pieces: list[bytes], cuts: list[int], whole: bool
) -> None:
    def outcome(parts: list[bytes]) -> tuple[object, ...]:
        of, passed, failed = reader(), b"", None
        for part in parts:
            if not (of.stopped or of.failure):
                passed += of.feed(part)
        number, mark = of.next_number, of.mark
        try:
            if not of.stopped or of.failure:
                passed += of.end(whole)
        except BackendError as error:
            failed = error.failure
        return passed, failed, of.response, number, mark

    written = b"".join(pieces)
    assert outcome(split_at(written, cuts)) == outcome([written])
