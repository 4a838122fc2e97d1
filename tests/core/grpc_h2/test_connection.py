"""A connection that keeps to the rules: greeting, calls, their ends, their order, and what receivers are told."""

from __future__ import annotations

import pytest
from hpack import Encoder

from sidecar.grpc_h2 import Limits, Status
from sidecar.grpc_h2.frames import (
    ACK,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    PADDED,
    PREFACE,
    PRIORITY_FIELDS,
    ErrorCode,
    Kind,
    Setting,
    frame,
    rst_stream,
    settings,
)
from tests.core.grpc_h2.peer import (
    ECHO,
    FAIL,
    GREETING,
    OK,
    RECORD,
    REQUEST,
    Peer,
    block,
    call,
    data,
    frames_in,
    headers,
    kinds,
    message,
    messages_in,
)


def test_the_server_greets_with_its_limits_and_acknowledges_ours() -> None:
    peer = Peer(Limits(max_concurrent_streams=7, stream_window=70_000, connection_window=100_000), greet=False)
    announced, window, ack = peer.say(GREETING)
    assert announced.kind is Kind.SETTINGS
    expected = {
        Setting.MAX_CONCURRENT_STREAMS: 7,
        Setting.INITIAL_WINDOW_SIZE: 70_000,
        Setting.MAX_HEADER_LIST_SIZE: Limits().max_header_bytes,
    }
    assert announced.payload == settings(expected)[9:]
    assert (window.kind, window.stream, window.number) == (Kind.WINDOW_UPDATE, 0, 100_000 - DEFAULT_WINDOW)
    assert (ack.kind, ack.flags, ack.payload) == (Kind.SETTINGS, ACK, b"")


def test_a_call_from_its_head_to_its_trailers() -> None:
    peer = Peer()
    head, first, second, trailers = peer.say(call(1, b"one", b"two"))
    assert peer.headers_of(head) == {":status": "200", "content-type": "application/grpc"}
    assert (first.payload, second.payload) == (message(b"one"), message(b"two"))
    assert peer.headers_of(trailers) == OK
    assert (head.flags, first.flags, trailers.flags) == (END_HEADERS, 0, END_HEADERS | END_STREAM)
    assert {frame.stream for frame in (head, first, second, trailers)} == {1}
    assert peer.told(1) == [
        ("opened", ECHO),
        ("received", b"one"),
        ("received", b"two"),
        ("half closed",),
        ("handed", 1),
        ("handed", 2),
        ("closed",),
    ]
    assert peer.connection.calls == 0


def test_calls_run_beside_each_other() -> None:
    peer = Peer()
    peer.say(headers(1), headers(3), headers(5, RECORD))
    sent = peer.say(data(3, message(b"c")), data(1, message(b"a")), data(5, message(b"r")), data(3, message(b"d")))
    assert [(frame.stream, frame.payload) for frame in sent if frame.kind is Kind.DATA] == [
        (3, message(b"c")),
        (1, message(b"a")),
        (3, message(b"d")),
    ]
    assert peer.connection.calls == 3


def test_metadata_reaches_the_method() -> None:
    peer = Peer()
    peer.say(headers(1, RECORD, changes={"x-name": "value", "x-data-bin": "AAE="}))
    metadata = peer.receivers[1].call.metadata
    assert (metadata["x-name"], metadata["x-data-bin"]) == ("value", "AAE=")
    assert ":path" not in metadata


def test_a_receiver_may_speak_first_and_at_any_time() -> None:
    peer = Peer()
    assert peer.say(headers(1, RECORD)) == []
    the_call = peer.receivers[1].call
    before = peer.wakes
    the_call.start()
    assert peer.wakes > before
    assert kinds(peer.sent()) == [Kind.HEADERS]
    the_call.send(b"unasked", 9)
    assert messages_in(peer.sent(), 1) == message(b"unasked")
    assert peer.told(1)[-1] == ("handed", 9)


def test_a_message_without_a_mark_is_not_told_of() -> None:
    peer = Peer()
    peer.say(headers(1, RECORD))
    peer.receivers[1].call.send(b"x")
    peer.sent()
    assert peer.told(1) == [("opened", RECORD)]


def test_a_mark_is_told_when_its_message_has_been_written_and_not_before() -> None:
    peer = Peer()
    peer.say(headers(1, RECORD))
    peer.receivers[1].call.send(b"x", 1)
    output = peer.connection.output()
    assert message(b"x") in output
    assert ("handed", 1) not in peer.told(1)
    peer.connection.handed_over()
    assert peer.told(1)[-1] == ("handed", 1)


def test_a_call_that_ends_first_takes_back_the_rest_of_the_request() -> None:
    peer = Peer()
    peer.say(headers(1, RECORD))
    peer.receivers[1].call.finish(Status.RESOURCE_EXHAUSTED, "100 % übervoll\n")
    trailers, reset = peer.sent()
    assert peer.headers_of(trailers) == {
        ":status": "200",
        "content-type": "application/grpc",
        "grpc-status": "8",
        "grpc-message": "100 %25 %C3%BCbervoll%0A",
    }
    assert (reset.kind, reset.code) == (Kind.RST_STREAM, ErrorCode.NO_ERROR)
    # What was under way then is no fault.
    assert peer.say(data(1, message(b"late")), data(1, b"", end=True)) == []
    assert peer.told(1) == [("opened", RECORD), ("closed",)]


def test_nothing_is_sent_after_the_end_of_a_call() -> None:
    peer = Peer()
    peer.say(headers(1, RECORD))
    the_call = peer.receivers[1].call
    the_call.finish()
    peer.sent()
    the_call.send(b"x", 1)
    the_call.start()
    the_call.finish(Status.INTERNAL)
    assert peer.sent() == []


def test_a_message_to_a_call_that_is_ending_is_not_delivered() -> None:
    peer = Peer()
    peer.say(peer.open_window(0), headers(1, RECORD))
    the_call = peer.receivers[1].call
    the_call.send(b"waits")
    the_call.finish()
    peer.say(data(1, message(b"late")), data(1, message(b"in pieces")[:7]))
    assert peer.told(1) == [("opened", RECORD)]


def test_a_client_that_takes_a_call_back_is_told_to_the_receiver_once() -> None:
    peer = Peer()
    peer.say(headers(1))
    assert peer.say(data(1, message(b"x")), rst_stream(1, ErrorCode.CANCEL), rst_stream(1, ErrorCode.CANCEL)) != []
    peer.connection.lost()
    assert peer.told(1) == [("opened", ECHO), ("received", b"x"), ("closed",)]


def test_nothing_is_sent_on_a_call_that_was_taken_back() -> None:
    peer = Peer()
    peer.say(headers(1, RECORD))
    the_call = peer.receivers[1].call
    peer.say(rst_stream(1, ErrorCode.CANCEL))
    the_call.start()
    the_call.send(b"x", 1)
    the_call.finish()
    assert peer.sent() == []


def test_a_lost_connection_ends_its_calls() -> None:
    peer = Peer()
    peer.say(headers(1), headers(3, RECORD))
    peer.connection.receive(data(1, message(b"unwritten"), end=True))
    peer.connection.lost()
    assert peer.told(1)[-1] == peer.told(3)[-1] == ("closed",)
    assert ("handed", 1) not in peer.told(1)
    assert peer.connection.calls == 0
    assert not peer.connection.has_output


def test_a_ping_is_answered_with_its_own_words() -> None:
    (pong,) = Peer().say(frame(Kind.PING, 0, 0, b"12345678"), frame(Kind.PING, ACK, 0, b"87654321"))
    assert (pong.kind, pong.flags, pong.payload) == (Kind.PING, ACK, b"12345678")


def test_what_need_not_be_understood_is_ignored() -> None:
    peer = Peer()
    ignored = [
        frame(Kind.PRIORITY, 0, 9, b"\0\0\0\1\x10"),
        frame(Kind.GOAWAY, 0, 0, bytes(8) + b"bye"),
        frame(Kind.SETTINGS, ACK, 0, b""),
        b"\0\0\3\x99\xff\0\0\0\1abc",
        settings({Setting.HEADER_TABLE_SIZE: 0, Setting.MAX_FRAME_SIZE: 2**24 - 1, Setting.ENABLE_PUSH: 1}),
    ]
    assert kinds(peer.say(*ignored)) == [Kind.SETTINGS]
    assert messages_in(peer.say(call(1, b"x")), 1) == message(b"x")


def test_padding_and_priority_fields_are_left_out() -> None:
    peer = Peer()
    padded = bytes([3]) + b"\0\0\0\0\x10" + block(REQUEST) + b"pad"
    peer.say(frame(Kind.HEADERS, END_HEADERS | PADDED | PRIORITY_FIELDS, 1, padded))
    sent = peer.say(frame(Kind.DATA, PADDED, 1, bytes([255]) + message(b"x") + bytes(255)))
    assert messages_in(sent, 1) == message(b"x")


@pytest.mark.parametrize("cut", [0, 1, 20])
def test_a_header_block_in_pieces_is_one(cut: int) -> None:
    peer, fields = Peer(), block({**REQUEST, "x-name": "value"})
    peer.say(frame(Kind.HEADERS, END_STREAM, 1, fields[:cut]), frame(Kind.CONTINUATION, 0, 1, fields[cut : cut + 5]))
    assert peer.events == []
    peer.say(frame(Kind.CONTINUATION, END_HEADERS, 1, fields[cut + 5 :]))
    assert peer.told(1) == [("opened", ECHO), ("half closed",), ("closed",)]


def test_trailers_of_the_client_end_its_half() -> None:
    peer = Peer()
    trailers = frame(Kind.HEADERS, END_HEADERS | END_STREAM, 1, block({"x-late": "1"}))
    peer.say(headers(1, RECORD), data(1, message(b"x")), trailers)
    assert peer.told(1) == [("opened", RECORD), ("received", b"x"), ("half closed",)]


def test_headers_repeated_by_their_indices_mean_the_same() -> None:
    peer, encoder = Peer(), Encoder()
    for number in range(6):
        fields = {**REQUEST, ":path": RECORD, "x-number": "same" if number < 3 else str(number // 2)}
        peer.say(frame(Kind.HEADERS, END_HEADERS, 2 * number + 1, block(fields, encoder)))
    seen = [peer.receivers[2 * number + 1].call.metadata["x-number"] for number in range(6)]
    assert seen == ["same", "same", "same", "1", "2", "2"]


def test_streams_beyond_the_limit_are_refused_and_may_be_tried_again() -> None:
    peer = Peer(Limits(max_concurrent_streams=2))
    encoder = Encoder()
    opened = [
        frame(Kind.HEADERS, END_HEADERS, stream, block({**REQUEST, "x-n": str(stream)}, encoder))
        for stream in (1, 3, 5)
    ]
    (refused,) = peer.say(*opened)
    assert (refused.kind, refused.stream, refused.code) == (Kind.RST_STREAM, 5, ErrorCode.REFUSED_STREAM)
    peer.say(rst_stream(1, ErrorCode.CANCEL))
    # What was refused has changed the header table all the same.
    again = frame(Kind.HEADERS, END_HEADERS, 7, block({**REQUEST, "x-n": "5"}, encoder))
    assert peer.say(again) == []
    assert peer.receivers[7].call.metadata["x-n"] == "5"


@pytest.mark.parametrize(
    ("request_head", "answer"),
    [
        (headers(1, "/test.Service/None"), {":status": "200", "grpc-status": "12"}),
        (headers(1, changes={"content-type": "text/plain"}), {":status": "415"}),
        (headers(1, changes={":method": "GET"}), {":status": "405"}),
        (headers(1, FAIL), {":status": "200", "grpc-status": "13"}),
    ],
    ids=["no such method", "no gRPC", "no POST", "a method that fails"],
)
@pytest.mark.parametrize("half_closed", [False, True])
def test_a_call_that_cannot_begin_is_answered_at_once(
    request_head: bytes, answer: dict[str, str], half_closed: bool
) -> None:
    peer = Peer()
    first, *rest = peer.say(request_head, *([data(1, b"", end=True)] if half_closed else []))
    fields = peer.headers_of(first)
    assert {name: fields[name] for name in answer} == answer
    assert first.flags & END_STREAM
    assert [frame.code for frame in rest] == [ErrorCode.NO_ERROR]
    assert peer.connection.calls == 0


def test_a_receiver_that_fails_ends_its_call_alone() -> None:
    peer = Peer()
    peer.say(headers(1), headers(3))

    def fail(message: bytes) -> None:
        raise RuntimeError("a fault of the application")

    peer.receivers[1].received = fail  # type: ignore[method-assign]
    head, trailers, reset, *echo = peer.say(data(1, message(b"x")), data(3, message(b"y")))[-5:]
    assert messages_in([head, trailers, reset, *echo], 3) == message(b"y")
    assert peer.told(1)[-1] == ("closed",)
    assert peer.connection.calls == 1


def test_a_receiver_that_fails_when_it_is_told_of_its_message_ends_its_call() -> None:
    peer = Peer()
    peer.say(headers(1), headers(3))

    def fail(mark: int) -> None:
        raise RuntimeError("a fault of the application")

    peer.receivers[1].handed = fail  # type: ignore[method-assign]
    sent = peer.say(data(1, message(b"x")), data(3, message(b"y")))
    assert [peer.headers_of(one)["grpc-status"] for one in sent if one.flags & END_STREAM] == ["13"]
    assert peer.told(3)[-1] == ("handed", 1)


def test_a_receiver_that_fails_at_the_end_of_its_call_harms_nobody() -> None:
    peer = Peer()
    peer.say(headers(1), headers(3))

    def fail() -> None:
        raise RuntimeError("a fault of the application")

    peer.receivers[1].closed = fail  # type: ignore[method-assign]
    peer.say(data(1, b"", end=True), data(3, b"", end=True))
    assert (peer.connection.calls, peer.told(3)[-1]) == (0, ("closed",))


def test_a_connection_that_leaves_lets_its_calls_end() -> None:
    peer = Peer()
    peer.say(headers(1))
    peer.connection.leave()
    peer.connection.leave()
    (goaway,) = peer.sent()
    assert (goaway.kind, goaway.payload[:4], goaway.code) == (Kind.GOAWAY, b"\0\0\0\1", ErrorCode.NO_ERROR)
    (refused,) = peer.say(headers(3))
    assert (refused.kind, refused.stream, refused.code) == (Kind.RST_STREAM, 3, ErrorCode.REFUSED_STREAM)
    assert not peer.connection.terminated
    assert messages_in(peer.say(data(1, message(b"last"), end=True)), 1) == message(b"last")
    assert peer.connection.terminated


def test_a_connection_that_retires_refuses_nothing_and_may_leave_later() -> None:
    peer = Peer()
    peer.say(headers(1))
    peer.connection.retire()
    peer.connection.retire()
    (goaway,) = peer.sent()
    assert (goaway.kind, goaway.payload[:4], goaway.code) == (Kind.GOAWAY, b"\x7f\xff\xff\xff", ErrorCode.NO_ERROR)
    # The peer may not have known it yet.
    for stream in (1, 3):
        assert messages_in(peer.say(*(headers(3),) * (stream == 3), data(stream, message(b"x"), end=True)), stream) == (
            message(b"x")
        )
    assert not peer.connection.terminated
    peer.connection.leave()
    (goaway,) = peer.sent()
    assert (goaway.kind, goaway.payload[:4]) == (Kind.GOAWAY, b"\0\0\0\3")
    assert peer.connection.terminated


def test_a_large_message_comes_in_many_frames_and_leaves_in_many() -> None:
    peer, large = Peer(), bytes(range(256)) * 400
    whole = message(large)
    sent = peer.say(headers(1), *(data(1, whole[start : start + 16_000]) for start in range(0, len(whole), 16_000)))
    # The peer's window is 65,535 bytes.
    more = peer.say(frame(Kind.WINDOW_UPDATE, 0, 1, b"\0\1\0\0"), frame(Kind.WINDOW_UPDATE, 0, 0, b"\0\1\0\0"))
    assert messages_in(sent + more, 1) == whole
    assert max(len(frame.payload) for frame in sent) == 16_384


def test_several_messages_in_a_frame_and_one_in_several() -> None:
    peer, whole = Peer(), message(b"a") + message(b"") + message(b"bc") + message(b"def")
    peer.say(headers(1, RECORD), data(1, whole[:13]), data(1, whole[13:20]), data(1, whole[20:]))
    assert [words[1] for words in peer.told(1)[1:]] == [b"a", b"", b"bc", b"def"]


def test_the_first_block_gives_up_the_header_table_for_good() -> None:
    peer = Peer()
    first, *_ = peer.say(call(1))
    second, *_ = peer.say(call(3))
    # RFC 7541, section 6.3: the dynamic table's size becomes 0.
    assert first.payload == b"\x20" + second.payload


def test_bytes_after_the_end_are_not_read() -> None:
    peer = Peer(greet=False)
    peer.say(b"GET / HTTP/1.1\r\n")
    assert peer.connection.terminated
    assert peer.say(PREFACE, call(1, b"x")) == []
    assert list(frames_in(b"")) == []
