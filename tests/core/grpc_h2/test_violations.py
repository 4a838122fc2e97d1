"""Peers that break the rules: each violation costs them what RFC 9113 says, a stream or the connection, and no more."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest
from hpack import Encoder

from sidecar.grpc_h2 import Limits, Status
from sidecar.grpc_h2.frames import (
    ACK,
    DEFAULT_FRAME_SIZE,
    END_HEADERS,
    END_STREAM,
    MAX_WINDOW,
    PADDED,
    PREFACE,
    PRIORITY_FIELDS,
    ErrorCode,
    Kind,
    Setting,
    frame,
    rst_stream,
    settings,
    window_update,
)
from tests.core.grpc_h2.peer import (
    ECHO,
    GREETING,
    RECORD,
    REQUEST,
    Peer,
    block,
    call,
    data,
    headers,
    kinds,
    message,
)

SMALL = Limits(
    max_concurrent_streams=10,
    max_message_bytes=1000,
    max_header_bytes=2000,
    stream_window=65_535,
    connection_window=100_000,
    max_idle_frames=100,
)
OPEN, ENDED = headers(1, RECORD), call(1, b"x")
PROTOCOL, SIZE, FLOW = ErrorCode.PROTOCOL_ERROR, ErrorCode.FRAME_SIZE_ERROR, ErrorCode.FLOW_CONTROL_ERROR
CALM, COMPRESSION = ErrorCode.ENHANCE_YOUR_CALM, ErrorCode.COMPRESSION_ERROR


def raw_headers(fields: bytes, flags: int = END_HEADERS, stream: int = 1) -> bytes:
    return frame(Kind.HEADERS, flags, stream, fields)


def head_of(size: int, kind: int, flags: int, stream: int) -> bytes:
    """A frame's head alone."""
    return struct.pack(">HBBBL", size >> 8, size & 255, kind, flags, stream)


def bomb() -> bytes:
    """A block that refers to one long field in the table again and again: 3 KB become 4 MB."""
    encoder = Encoder()
    first = bytes(encoder.encode([("x-bomb", "b" * 1300)], huffman=False))
    return first + b"\xbe" * 600


# What is said after the greeting, and the code with which the connection ends.
OF_THE_CONNECTION: dict[str, tuple[list[bytes], ErrorCode]] = {
    "a frame beyond the size": ([head_of(DEFAULT_FRAME_SIZE + 1, Kind.DATA, 0, 1)], SIZE),
    "an unknown frame beyond the size": ([head_of(2**24 - 1, 0x99, 0, 0)], SIZE),
    "DATA on stream 0": ([data(0, b"x")], PROTOCOL),
    "DATA on a stream that was never opened": ([data(3, b"x")], PROTOCOL),
    "DATA on a stream of the server's": ([OPEN, data(2, b"x")], PROTOCOL),
    "DATA with more padding than payload": ([OPEN, frame(Kind.DATA, PADDED, 1, b"\5abcd")], PROTOCOL),
    "DATA with no padding length": ([OPEN, frame(Kind.DATA, PADDED, 1, b"")], PROTOCOL),
    "HEADERS on stream 0": ([headers(0)], PROTOCOL),
    "HEADERS on a stream of the server's": ([headers(2)], PROTOCOL),
    "a stream that is opened twice": ([ENDED, headers(1)], PROTOCOL),
    "streams in the wrong order": ([call(5, b"x"), headers(3)], PROTOCOL),
    "HEADERS with more padding than payload": ([raw_headers(b"\xffabc", END_HEADERS | PADDED)], PROTOCOL),
    "HEADERS too short for their priority": ([raw_headers(b"\0\0\0", END_HEADERS | PRIORITY_FIELDS)], SIZE),
    "a block that is no HPACK": ([raw_headers(b"\xff\xff\xff\xff\xff\xff")], COMPRESSION),
    "a block with an index of nothing": ([raw_headers(b"\x80")], COMPRESSION),
    "a block that stops in the middle": ([raw_headers(block(REQUEST)[:-3])], COMPRESSION),
    "a table larger than allowed": ([raw_headers(b"\x3f\xe2\x7f" + block(REQUEST))], COMPRESSION),
    "a block that breaks the table of a stream that has ended": (
        [ENDED, raw_headers(b"\x80", END_HEADERS | END_STREAM)],
        COMPRESSION,
    ),
    "an HPACK bomb": ([raw_headers(bomb())], CALM),
    "headers that are too long": ([headers(1, changes={"x-long": "x" * 1800})], CALM),
    "headers that are too many": ([headers(1, changes={f"x-{number}": "" for number in range(50)})], CALM),
    "CONTINUATION of nothing": ([frame(Kind.CONTINUATION, 0, 1, b"")], PROTOCOL),
    "CONTINUATION after the end of a block": ([OPEN, frame(Kind.CONTINUATION, END_HEADERS, 1, b"")], PROTOCOL),
    "CONTINUATION of another stream": (
        [raw_headers(b"", 0), frame(Kind.CONTINUATION, END_HEADERS, 3, block(REQUEST))],
        PROTOCOL,
    ),
    "a block that DATA interrupts": ([OPEN, raw_headers(b"", 0, 3), data(1, b"")], PROTOCOL),
    "a block that PING interrupts": ([raw_headers(b"", 0), frame(Kind.PING, 0, 0, bytes(8))], PROTOCOL),
    "a block that an unknown frame interrupts": ([raw_headers(b"", 0), b"\0\0\0\x99\0\0\0\0\1"], PROTOCOL),
    "CONTINUATION without an end": (
        [raw_headers(b"", 0), *[frame(Kind.CONTINUATION, 0, 1, b"\0" * 500)] * 5],
        CALM,
    ),
    "RST_STREAM of a stream that was never opened": ([rst_stream(1, ErrorCode.CANCEL)], PROTOCOL),
    "RST_STREAM of the connection": ([OPEN, rst_stream(0, ErrorCode.CANCEL)], PROTOCOL),
    "RST_STREAM of another size": ([OPEN, frame(Kind.RST_STREAM, 0, 1, b"\0\0\0")], SIZE),
    "SETTINGS of a stream": ([OPEN, frame(Kind.SETTINGS, 0, 1, b"")], PROTOCOL),
    "SETTINGS of another size": ([frame(Kind.SETTINGS, 0, 0, b"\0\1\0\0\0")], SIZE),
    "an acknowledgement with settings": ([frame(Kind.SETTINGS, ACK, 0, bytes(6))], SIZE),
    "ENABLE_PUSH of 2": ([settings({Setting.ENABLE_PUSH: 2})], PROTOCOL),
    "an initial window that is too large": ([settings({Setting.INITIAL_WINDOW_SIZE: MAX_WINDOW + 1})], FLOW),
    "an initial window that makes a stream's too large": (
        [OPEN, window_update(1, MAX_WINDOW - 65_535), settings({Setting.INITIAL_WINDOW_SIZE: 65_536})],
        FLOW,
    ),
    "frames smaller than the least": ([settings({Setting.MAX_FRAME_SIZE: 16_383})], PROTOCOL),
    "frames larger than the most": ([settings({Setting.MAX_FRAME_SIZE: 2**24})], PROTOCOL),
    "PUSH_PROMISE": ([OPEN, frame(Kind.PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + block(REQUEST))], PROTOCOL),
    "PING of a stream": ([OPEN, frame(Kind.PING, 0, 1, bytes(8))], PROTOCOL),
    "PING of another size": ([frame(Kind.PING, 0, 0, bytes(7))], SIZE),
    "GOAWAY of a stream": ([OPEN, frame(Kind.GOAWAY, 0, 1, bytes(8))], PROTOCOL),
    "GOAWAY of another size": ([frame(Kind.GOAWAY, 0, 0, bytes(7))], SIZE),
    "PRIORITY of the connection": ([frame(Kind.PRIORITY, 0, 0, bytes(5))], PROTOCOL),
    "PRIORITY of another size": ([frame(Kind.PRIORITY, 0, 1, bytes(4))], SIZE),
    "WINDOW_UPDATE of another size": ([frame(Kind.WINDOW_UPDATE, 0, 0, bytes(5))], SIZE),
    "WINDOW_UPDATE by nothing": ([window_update(0, 0)], PROTOCOL),
    "WINDOW_UPDATE of a stream that was never opened": ([window_update(1, 1)], PROTOCOL),
    "a window of the connection that overflows": ([window_update(0, MAX_WINDOW)], FLOW),
}

# What is said after the greeting, and the code with which stream 1 ends, and it alone.
OF_THE_STREAM: dict[str, tuple[list[bytes], ErrorCode]] = {
    "DATA after the end": ([call(1, b"x", path=RECORD), data(1, message(b"y"))], ErrorCode.STREAM_CLOSED),
    "trailers after the end": (
        [call(1, b"x", path=RECORD), raw_headers(block({"x": "y"}), END_HEADERS | END_STREAM)],
        ErrorCode.STREAM_CLOSED,
    ),
    "headers in the middle": ([OPEN, raw_headers(block({"x": "y"}))], PROTOCOL),
    "a pseudo-header in trailers": ([OPEN, raw_headers(block({":path": "/"}), END_HEADERS | END_STREAM)], PROTOCOL),
    "a name in upper case": ([headers(1, changes={"X-Name": "x"})], PROTOCOL),
    "a name with a space": ([headers(1, changes={"x name": "x"})], PROTOCOL),
    "a name with nothing in it": ([headers(1, changes={"": "x"})], PROTOCOL),
    "a value with a line break": ([headers(1, changes={"x-name": "a\r\nb: c"})], PROTOCOL),
    "a value with a zero": ([headers(1, changes={"x-name": "a\0b"})], PROTOCOL),
    "a value that begins with a space": ([headers(1, changes={"x-name": " a"})], PROTOCOL),
    "a header of HTTP/1.1": ([headers(1, changes={"connection": "close"})], PROTOCOL),
    "transfer-encoding": ([headers(1, changes={"transfer-encoding": "chunked"})], PROTOCOL),
    "te that is more than trailers": ([headers(1, changes={"te": "gzip"})], PROTOCOL),
    "a response's pseudo-header": ([headers(1, changes={":status": "200"})], PROTOCOL),
    "an unknown pseudo-header": ([headers(1, changes={":what": "x"})], PROTOCOL),
    "a pseudo-header twice": ([raw_headers(block(REQUEST) + block({":path": "/x"}))], PROTOCOL),
    "a pseudo-header after others": ([raw_headers(block({"a": "b"}) + block(REQUEST))], PROTOCOL),
    "no method": ([raw_headers(block({":scheme": "http", ":path": "/"}))], PROTOCOL),
    "an empty path": ([headers(1, "")], PROTOCOL),
    "WINDOW_UPDATE by nothing": ([OPEN, window_update(1, 0)], PROTOCOL),
    "a window that overflows": ([OPEN, window_update(1, MAX_WINDOW)], FLOW),
    "more than the window of a stream that does not read": (
        [settings({Setting.INITIAL_WINDOW_SIZE: 0}), headers(1), *[data(1, 16 * message(bytes(995)))] * 5],
        FLOW,
    ),
}


@pytest.mark.parametrize(("said", "code"), OF_THE_CONNECTION.values(), ids=OF_THE_CONNECTION)
def test_a_violation_that_ends_the_connection(said: list[bytes], code: ErrorCode) -> None:
    peer = Peer(SMALL)
    *_, goaway = peer.say(*said)
    assert (goaway.kind, goaway.stream, goaway.code) == (Kind.GOAWAY, 0, code)
    assert peer.connection.terminated
    assert all(peer.told(stream)[-1] == ("closed",) for stream in peer.receivers)
    assert peer.say(OPEN, frame(Kind.PING, 0, 0, bytes(8))) == []


@pytest.mark.parametrize(("said", "code"), OF_THE_STREAM.values(), ids=OF_THE_STREAM)
def test_a_violation_that_ends_its_stream_alone(said: list[bytes], code: ErrorCode) -> None:
    peer = Peer(SMALL)
    *_, reset = peer.say(*said)
    assert (reset.kind, reset.stream, reset.code) == (Kind.RST_STREAM, 1, code)
    assert peer.told(1)[-1:] in ([], [("closed",)])
    assert peer.connection.calls == 0
    sent = peer.say(settings({}), headers(3), window_update(3, 100), data(3, message(b"well")))
    assert [one.payload for one in sent if one.kind is Kind.DATA] == [message(b"well")]


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", b"\0", b"\x16\x03\x01", PREFACE[1:]],
    ids=["HTTP/1.1", "another preface", "a zero", "TLS", "a part"],
)
def test_who_does_not_speak_http2_is_told_so(said: bytes) -> None:
    peer = Peer(greet=False)
    (goaway,) = peer.say(said)
    assert (goaway.kind, goaway.code) == (Kind.GOAWAY, PROTOCOL)
    assert peer.connection.terminated


@pytest.mark.parametrize(
    "first",
    [headers(1), frame(Kind.PING, 0, 0, bytes(8)), frame(Kind.SETTINGS, ACK, 0, b""), window_update(0, 1)],
    ids=["HEADERS", "PING", "an acknowledgement", "WINDOW_UPDATE"],
)
def test_the_first_frame_is_settings(first: bytes) -> None:
    peer = Peer(greet=False)
    (goaway,) = peer.say(PREFACE, first)
    assert (goaway.kind, goaway.code) == (Kind.GOAWAY, PROTOCOL)


def endless(make: Callable[[int], bytes]) -> Iterator[bytes]:
    return (make(number) for number in range(10_000))


FLOODS: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "SETTINGS": (b"", lambda _: settings({Setting.INITIAL_WINDOW_SIZE: 65_535})),
    "acknowledgements": (b"", lambda _: frame(Kind.SETTINGS, ACK, 0, b"")),
    "PING": (b"", lambda _: frame(Kind.PING, 0, 0, bytes(8))),
    "PRIORITY": (b"", lambda _: frame(Kind.PRIORITY, 0, 1, bytes(5))),
    "unknown frames": (b"", lambda _: b"\0\0\0\x99\0\0\0\0\0"),
    "GOAWAY": (b"", lambda _: frame(Kind.GOAWAY, 0, 0, bytes(8))),
    "empty DATA": (OPEN, lambda _: data(1, b"")),
    "tiny DATA": (OPEN + data(1, struct.pack(">BL", 0, 1000)), lambda _: data(1, b"x")),
    "empty CONTINUATION": (raw_headers(b"", 0), lambda _: frame(Kind.CONTINUATION, 0, 1, b"")),
    "tiny steps of a window": (OPEN, lambda _: window_update(1, 1)),
    "RST_STREAM of one stream": (OPEN, lambda _: rst_stream(1, ErrorCode.CANCEL)),
    "streams taken back": (b"", lambda n: headers(2 * n + 1, RECORD) + rst_stream(2 * n + 1, ErrorCode.CANCEL)),
    "streams that are refused": (b"", lambda n: headers(2 * n + 1, RECORD)),
    "streams that are malformed": (b"", lambda n: headers(2 * n + 1, "")),
    "DATA of a stream that has ended": (ENDED, lambda _: data(1, b"x")),
}


@pytest.mark.parametrize(("before", "make"), FLOODS.values(), ids=FLOODS)
def test_a_flood_ends_the_connection(before: bytes, make: Callable[[int], bytes]) -> None:
    peer = Peer(SMALL)
    peer.say(before)
    said = 0
    for piece in endless(make):
        said += 1
        peer.connection.receive(piece)
        if peer.connection.terminated:
            break
    assert said <= SMALL.max_idle_frames + 1
    assert peer.sent()[-1].code is CALM


def test_frames_between_messages_are_no_flood() -> None:
    peer = Peer(SMALL)
    peer.say(headers(1))
    for _ in range(30):
        said = [frame(Kind.PING, 0, 0, bytes(8))] * 90
        assert Kind.GOAWAY not in kinds(peer.say(*said, data(1, message(b"x"))))


def test_steps_of_a_window_that_let_something_out_are_no_flood() -> None:
    peer = Peer(SMALL)
    peer.say(peer.open_window(0), headers(1, RECORD))
    peer.receivers[1].call.send(bytes(300_000))
    sent = [peer.say(window_update(1, 1024), window_update(0, 1024))[-1] for _ in range(290)]
    assert {(one.kind, len(one.payload)) for one in sent} == {(Kind.DATA, 1024)}


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (data(1, struct.pack(">BL", 1, 3) + b"gz!"), Status.UNIMPLEMENTED),
        (data(1, struct.pack(">BL", 0, 1001)), Status.RESOURCE_EXHAUSTED),
        (data(1, struct.pack(">BL", 0, 2**32 - 1)), Status.RESOURCE_EXHAUSTED),
        (data(1, message(b"whole")[:-1], end=True), Status.INTERNAL),
        (data(1, b"\0", end=True), Status.INTERNAL),
    ],
    ids=["compressed", "too long", "far too long", "cut short", "cut in the prefix"],
)
def test_what_is_no_grpc_message_ends_the_call_with_a_status(said: bytes, status: Status) -> None:
    peer = Peer(SMALL)
    peer.say(headers(1, RECORD))
    trailers, *reset = peer.say(said)
    assert peer.headers_of(trailers)["grpc-status"] == str(int(status))
    assert [one.code for one in reset] in ([], [ErrorCode.NO_ERROR])
    assert [words[0] for words in peer.told(1)] == ["opened", "closed"]
    assert peer.say(call(3, b"well"))[1].payload == message(b"well")


def test_settings_that_come_in_one_read_are_all_acknowledged() -> None:
    assert kinds(Peer().say(settings({}) * 3)) == [Kind.SETTINGS] * 3


def test_a_violation_of_the_greeting_leaves_nothing_to_say_after_it() -> None:
    peer = Peer(greet=False)
    assert kinds(peer.say(GREETING + data(0, b"") + call(1, b"x", path=ECHO))) == [Kind.GOAWAY]
