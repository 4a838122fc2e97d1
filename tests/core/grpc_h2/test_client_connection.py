"""A client's end of a connection: what calls send, what their answers are told, and who waits for whom."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.grpc_h2 import Limits
from sidecar.grpc_h2.frames import (
    ACK,
    DEFAULT_FRAME_SIZE,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    MAX_WINDOW,
    PADDED,
    ErrorCode,
    Kind,
    Setting,
    frame,
    goaway,
    rst_stream,
    settings,
    window_update,
)
from tests.core.grpc_h2.peer import block, data, kinds, messages_in
from tests.core.grpc_h2.server_peer import GREETING, HEAD, PATH, TRAILERS, ServerPeer, fields_in, head, trailers
from tests.core.python_calls import counted_calls
from tests.core.splits import split_at

SMALL = Limits(
    max_header_bytes=2000, stream_window=DEFAULT_WINDOW, connection_window=2 * DEFAULT_WINDOW, max_idle_frames=100
)


@pytest.fixture
def peer() -> ServerPeer:
    return ServerPeer()


def test_it_says_that_nothing_may_be_pushed_and_what_it_takes(peer: ServerPeer) -> None:
    first, second = peer.greeting
    assert first.kind is Kind.SETTINGS
    assert first.payload.startswith(bytes([0, Setting.ENABLE_PUSH, 0, 0, 0, 0]))
    assert (second.kind, second.stream) == (Kind.WINDOW_UPDATE, 0)


def test_a_call_is_its_headers_and_all_of_its_body(peer: ServerPeer) -> None:
    peer.call(b"body", {"x-request-id": "r-1"})
    opening, rest = peer.sent()
    assert (opening.kind, opening.flags, opening.stream) == (Kind.HEADERS, END_HEADERS, 1)
    assert fields_in(opening) == {
        ":method": "POST",
        ":scheme": "http",
        ":path": PATH,
        ":authority": "test",
        "content-type": "application/grpc",
        "te": "trailers",
        "x-request-id": "r-1",
    }
    assert (rest.kind, rest.flags, rest.payload) == (Kind.DATA, END_STREAM, b"body")


def test_headers_that_fill_more_than_a_frame_are_continued(peer: ServerPeer) -> None:
    peer.call(b"body", {"x-long": "v" * 40_000})
    first, second, third, _ = peer.sent()
    assert [one.kind for one in (first, second, third)] == [Kind.HEADERS, Kind.CONTINUATION, Kind.CONTINUATION]
    assert [one.flags for one in (first, second, third)] == [0, 0, END_HEADERS]
    assert fields_in(first, second, third)["x-long"] == "v" * 40_000


def test_an_answer_is_told_in_its_order(peer: ServerPeer) -> None:
    peer.call()
    peer.call()
    peer.say(head(3), head(1), data(1, b"one"), data(3, b"three"), trailers(3), data(1, b" more"), trailers(1))
    assert peer.told(1) == [
        ["begun", HEAD],
        ["received", b"one"],
        ["received", b" more"],
        ["ended", TRAILERS],
    ]
    assert peer.told(3) == [["begun", HEAD], ["received", b"three"], ["ended", TRAILERS]]
    assert peer.connection.calls == 0


def test_informational_heads_are_passed_over_and_a_head_may_be_all(peer: ServerPeer) -> None:
    peer.call()
    whole = {**HEAD, "grpc-status": "14", "grpc-message": "no"}
    peer.say(head(1, {":status": "100"}), head(1, whole, end=True))
    assert peer.told(1) == [["begun", whole], ["ended", whole]]


def test_padding_is_not_the_answer_s(peer: ServerPeer) -> None:
    peer.call()
    peer.say(head(1), frame(Kind.DATA, PADDED, 1, b"\x03text\0\0\0"))
    assert peer.told(1)[1:] == [["received", b"text"]]


def test_an_answer_without_trailers_has_none(peer: ServerPeer) -> None:
    peer.call()
    peer.say(head(1), data(1, b"x", end=True))
    assert peer.told(1)[-1] == ["ended", {}]


@pytest.mark.parametrize("said", [b"", head(1), head(1) + data(1, b"x")])
def test_what_breaks_off_is_told_so(peer: ServerPeer, said: bytes) -> None:
    peer.call()
    peer.say(said, rst_stream(1, ErrorCode.INTERNAL_ERROR))
    assert peer.told(1)[-1] == ["ended", None]
    peer.call()
    peer.say(head(3) if said else b"")
    peer.connection.lost()
    assert peer.told(3)[-1] == ["ended", None]


def test_a_call_that_is_cancelled_tells_the_server_and_hears_nothing_more(peer: ServerPeer) -> None:
    call = peer.call()
    peer.say(head(1), data(1, b"x"))
    call.cancel()
    (reset,) = peer.sent()
    assert (reset.kind, reset.stream, reset.code) == (Kind.RST_STREAM, 1, ErrorCode.CANCEL)
    before = list(peer.events)
    # What was on its way.
    assert peer.say(data(1, b"late"), trailers(1), rst_stream(1, ErrorCode.CANCEL), window_update(1, 10)) == []
    peer.connection.lost()
    assert peer.events == before


def test_a_call_that_has_ended_is_not_cancelled(peer: ServerPeer) -> None:
    call = peer.call()
    peer.say(head(1), trailers(1))
    call.cancel()
    assert peer.sent() == []


def test_an_answer_that_fails_cancels_its_call_alone(peer: ServerPeer) -> None:
    peer.call()
    peer.call()
    peer.answers[1].received = lambda _: 1 / 0  # type: ignore[method-assign, assignment]
    sent = peer.say(head(1) + head(3) + data(1, b"x") + data(3, b"y"))
    (reset,) = [one for one in sent if one.kind is Kind.RST_STREAM]
    assert (reset.stream, reset.code) == (1, ErrorCode.CANCEL)
    assert peer.told(3)[-1] == ["received", b"y"]


def test_a_large_body_goes_as_far_as_the_windows_and_no_further(peer: ServerPeer) -> None:
    body = bytes(range(256)) * 1000
    peer.call(body)
    sent = peer.sent()
    assert messages_in(sent, 1) == body[:DEFAULT_WINDOW]
    assert peer.say(window_update(1, 100_000)) == []
    sent = peer.say(window_update(0, 10_000))
    assert messages_in(sent, 1) == body[DEFAULT_WINDOW:][:10_000]
    sent = peer.say(window_update(0, MAX_WINDOW - DEFAULT_WINDOW), window_update(1, 1_000_000))
    assert messages_in(sent, 1) == body[DEFAULT_WINDOW + 10_000 :]
    assert max(len(one.payload) for one in sent) == DEFAULT_FRAME_SIZE
    assert [one.flags for one in sent][-2:] == [0, END_STREAM]


def test_large_bodies_take_turns(peer: ServerPeer) -> None:
    peer.call(bytes(DEFAULT_WINDOW))
    peer.call(bytes(DEFAULT_WINDOW))
    peer.say(window_update(0, 10 * DEFAULT_WINDOW))
    assert peer.connection.calls == 2
    peer = ServerPeer()
    peer.say(window_update(0, 10 * DEFAULT_WINDOW))
    peer.call(bytes(40_000))
    peer.call(bytes(40_000))
    streams = [one.stream for one in peer.sent() if one.kind is Kind.DATA]
    assert streams[:4] == [1, 3, 1, 3]


def test_an_answer_before_the_end_of_the_request_ends_that_too(peer: ServerPeer) -> None:
    peer.call(bytes(2 * DEFAULT_WINDOW))
    peer.sent()
    (reset,) = peer.say(head(1, {**HEAD, "grpc-status": "8"}, end=True))
    assert (reset.kind, reset.code) == (Kind.RST_STREAM, ErrorCode.NO_ERROR)
    assert peer.told(1)[-1][0] == "ended"


def test_a_congested_answer_is_granted_no_more_and_the_others_are() -> None:
    peer = ServerPeer(SMALL)
    call = peer.call()
    peer.call()
    peer.sent()
    peer.answers[1].congested = True
    piece = bytes(DEFAULT_FRAME_SIZE)
    three = data(1, piece) * 3
    granted = peer.say(head(1), head(3), three, three.replace(data(1, piece), data(3, piece)))
    assert {one.stream for one in granted if one.kind is Kind.WINDOW_UPDATE} == {0, 3}
    assert len(peer.told(1)) == 4
    peer.answers[1].congested = False
    call.resume()
    (update,) = peer.sent()
    assert (update.stream, update.number) == (1, 3 * DEFAULT_FRAME_SIZE)


def test_a_server_that_sends_more_than_was_granted_loses_the_call() -> None:
    peer = ServerPeer(SMALL)
    peer.call()
    peer.answers[1].congested = True
    piece = data(1, bytes(DEFAULT_FRAME_SIZE))
    resets = [one for one in peer.say(head(1), piece * 4) if one.kind is Kind.RST_STREAM]
    assert [one.code for one in resets] == [ErrorCode.FLOW_CONTROL_ERROR]
    assert peer.told(1)[-1] == ["ended", None]


def test_a_server_says_how_many_calls_it_takes(peer: ServerPeer) -> None:
    peer.call()
    assert peer.connection.has_room
    peer.say(settings({Setting.MAX_CONCURRENT_STREAMS: 1}))
    assert not peer.connection.has_room
    assert peer.connection.is_open
    peer.say(head(1), trailers(1))
    assert peer.connection.has_room


def test_calls_that_the_server_has_not_looked_at_are_made_again(peer: ServerPeer) -> None:
    first, second, third = peer.call(b"1"), peer.call(b"2"), peer.call(b"3")
    peer.say(rst_stream(3, ErrorCode.REFUSED_STREAM))
    assert peer.again == [second]
    peer.say(goaway(1, ErrorCode.NO_ERROR, "leaving"))
    assert peer.again == [second, third]
    assert not peer.connection.is_open
    # Those that it has looked at go on, and then the connection is over.
    assert not peer.connection.terminated
    peer.say(head(1), data(1, b"x"), trailers(1))
    assert peer.told(1)[-1] == ["ended", TRAILERS]
    assert peer.connection.terminated
    assert first not in peer.again


def test_a_call_is_not_made_for_ever() -> None:
    tries = 0
    peer = ServerPeer()
    call = peer.call()
    while not peer.told(1):
        tries += 1
        other = ServerPeer()
        other.connection.open(call)
        other.say(rst_stream(1, ErrorCode.REFUSED_STREAM))
    assert tries == 2
    assert peer.told(1) == [["ended", None]]


def test_a_call_that_was_looked_at_is_not_made_again(peer: ServerPeer) -> None:
    peer.call()
    peer.say(head(1), rst_stream(1, ErrorCode.REFUSED_STREAM))
    assert (peer.again, peer.told(1)[-1]) == ([], ["ended", None])


def test_a_ping_is_answered(peer: ServerPeer) -> None:
    (pong,) = peer.say(frame(Kind.PING, 0, 0, b"12345678"))
    assert (pong.kind, pong.flags, pong.payload) == (Kind.PING, ACK, b"12345678")


# What a server says of the call on stream 1, and the code with which that is reset; the connection goes on.
OF_THE_STREAM: dict[str, tuple[bytes, ErrorCode]] = {
    "DATA before the head": (data(1, b"x"), ErrorCode.PROTOCOL_ERROR),
    "trailers before the head": (head(1, {"grpc-status": "0"}), ErrorCode.PROTOCOL_ERROR),
    "a second head": (head(1) + head(1), ErrorCode.PROTOCOL_ERROR),
    "a head as trailers": (head(1) + head(1, end=True), ErrorCode.PROTOCOL_ERROR),
    "trailers that do not end the stream": (head(1) + head(1, TRAILERS), ErrorCode.PROTOCOL_ERROR),
    "an informational end": (head(1, {":status": "103"}, end=True), ErrorCode.PROTOCOL_ERROR),
    "a pseudo-header of requests": (head(1, {":status": "200", ":path": "/"}), ErrorCode.PROTOCOL_ERROR),
    "a name in capitals": (head(1, {":status": "200", "X-Name": "v"}), ErrorCode.PROTOCOL_ERROR),
    "a header of HTTP/1.1 connections": (head(1, {**HEAD, "connection": "close"}), ErrorCode.PROTOCOL_ERROR),
    "a window opened by nothing": (head(1) + window_update(1, 0), ErrorCode.PROTOCOL_ERROR),
    "a window beyond the largest": (head(1) + window_update(1, MAX_WINDOW), ErrorCode.FLOW_CONTROL_ERROR),
}


@pytest.mark.parametrize(("said", "code"), OF_THE_STREAM.values(), ids=OF_THE_STREAM)
def test_a_violation_on_a_stream_costs_that(peer: ServerPeer, said: bytes, code: ErrorCode) -> None:
    peer.call()
    peer.call()
    resets = [one for one in peer.say(said) if one.kind is Kind.RST_STREAM]
    assert [(one.stream, one.code) for one in resets] == [(1, code)]
    assert peer.told(1)[-1] == ["ended", None]
    peer.say(head(3), trailers(3))
    assert peer.told(3)[-1] == ["ended", TRAILERS]


# What a server says while a call is under way, and the code with which the connection ends.
OF_THE_CONNECTION: dict[str, tuple[bytes, ErrorCode]] = {
    "no SETTINGS": (head(1), ErrorCode.PROTOCOL_ERROR),
    "HTTP/1.1": (b"HTTP/1.1 400 Bad Request\r\n\r\n", ErrorCode.FRAME_SIZE_ERROR),
    "a push": (GREETING + frame(Kind.PUSH_PROMISE, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "a stream of the server's": (GREETING + head(2), ErrorCode.PROTOCOL_ERROR),
    "headers of a call that was not made": (GREETING + head(9), ErrorCode.PROTOCOL_ERROR),
    "DATA of a call that was not made": (GREETING + data(9, b"x"), ErrorCode.PROTOCOL_ERROR),
    "a reset of a call that was not made": (GREETING + rst_stream(9, ErrorCode.CANCEL), ErrorCode.PROTOCOL_ERROR),
    "GOAWAY that is too short": (GREETING + frame(Kind.GOAWAY, 0, 0, b"1234"), ErrorCode.FRAME_SIZE_ERROR),
    "headers that cannot be decompressed": (
        GREETING + frame(Kind.HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff"),
        ErrorCode.COMPRESSION_ERROR,
    ),
    "headers beyond the limit": (GREETING + head(1, {**HEAD, "x": "v" * 3000}), ErrorCode.ENHANCE_YOUR_CALM),
    "tiny DATA on end": (GREETING + head(1) + data(1, b"x") * 200, ErrorCode.ENHANCE_YOUR_CALM),
    "empty DATA of a call that was cancelled": (GREETING + data(3, b"") * 200, ErrorCode.ENHANCE_YOUR_CALM),
    "pings on end": (GREETING + frame(Kind.PING, 0, 0, bytes(8)) * 200, ErrorCode.ENHANCE_YOUR_CALM),
}


@pytest.mark.parametrize(("said", "code"), OF_THE_CONNECTION.values(), ids=OF_THE_CONNECTION)
def test_a_violation_of_the_connection_ends_it_and_its_calls(said: bytes, code: ErrorCode) -> None:
    peer = ServerPeer(SMALL, greet=False)
    peer.call()
    peer.call().cancel()
    goodbye = peer.say(said)[-1]
    assert (goodbye.kind, goodbye.code) == (Kind.GOAWAY, code)
    assert peer.told(1)[-1] == ["ended", None]
    assert peer.connection.terminated
    assert not peer.connection.is_open


streams = st.sampled_from([1, 1, 1, 3, 3, 5, 7, 0, 2])
fields = st.sampled_from([HEAD, HEAD, TRAILERS, {":status": "103"}, {**HEAD, "grpc-status": "1"}, {"A": "b"}])
steps = st.one_of(
    st.builds(head, streams, fields, end=st.booleans()),
    st.builds(lambda s, f, cut: _continued(s, block(f), cut), streams, fields, st.integers(0, 40)),
    st.builds(data, streams, st.binary(max_size=20), end=st.booleans()),
    st.builds(lambda s, m, p: frame(Kind.DATA, PADDED, s, bytes([p]) + m + bytes(p)), streams, st.binary(), streams),
    st.builds(rst_stream, streams, st.sampled_from(ErrorCode)),
    st.builds(window_update, streams, st.sampled_from([0, 1, 100_000, MAX_WINDOW])),
    st.builds(goaway, streams, st.sampled_from(ErrorCode), st.just("")),
    st.builds(
        lambda setting, value: settings({setting: value}), st.sampled_from(Setting), st.sampled_from([0, 10, 65_535])
    ),
    st.builds(frame, st.sampled_from(Kind), st.sampled_from([0, 1, 4, 5, 8, 32]), streams, st.binary(max_size=12)),
    st.binary(max_size=30),
)
conversations = st.lists(steps, max_size=25).map(b"".join)


def _continued(stream: int, whole: bytes, cut: int) -> bytes:
    """A header block in two frames."""
    return frame(Kind.HEADERS, 0, stream, whole[:cut]) + frame(Kind.CONTINUATION, END_HEADERS, stream, whole[cut:])


def follow(pieces: list[bytes]) -> tuple[Any, ...]:
    """What comes of a conversation with three calls, one of them large and one cancelled."""
    peer = ServerPeer(SMALL, greet=False)
    peer.call()
    peer.call(bytes(100_000))
    peer.call().cancel()
    sent = peer.say(*pieces)
    peer.connection.lost()
    return peer.events, sent, len(peer.again), peer.connection.terminated


@given(conversations, st.lists(st.integers(0, 1500), max_size=12))
def test_any_split_gives_the_same(said: bytes, cuts: list[int]) -> None:
    events, sent, again, terminated = follow([GREETING + said])
    split_events, split_sent, split_again, split_terminated = follow(split_at(GREETING + said, cuts))
    assert (split_events, split_again, split_terminated) == (events, again, terminated)
    assert kinds(split_sent).count(Kind.GOAWAY) == kinds(sent).count(Kind.GOAWAY)
    assert [messages_in(split_sent, stream) for stream in (1, 3)] == [messages_in(sent, stream) for stream in (1, 3)]


@given(conversations)
def test_whatever_is_said_every_call_ends_once_or_is_made_again(said: bytes) -> None:
    events, _, again, _ = follow([GREETING + said])
    ended = [number for number, what, *_ in events if what == "ended"]
    assert 5 not in ended
    assert len(ended) == len(set(ended))
    assert len(ended) + again == 2
    assert all([words[1] for words in events if words[0] == number][-1] == "ended" for number in ended)


def test_a_piece_of_an_answer_costs_one_call(peer: ServerPeer) -> None:
    """From the read to the answer, beside the answer's own."""
    peer.call()
    peer.call()
    peer.say(head(1), head(3))
    pieces = b"".join(data(stream, b"a message of some bytes") for _ in range(50) for stream in (1, 3))
    with counted_calls("sidecar.grpc_h2.") as calls:
        peer.connection.receive(pieces)
    assert calls.pop("ClientConnection._take_data") == 100
    assert calls.total() <= 5, calls
