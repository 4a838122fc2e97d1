"""Windows in both directions: what waits, who goes first, what is told when, and who is held back by a slow peer."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.grpc_h2 import Call, Limits
from sidecar.grpc_h2.frames import DEFAULT_WINDOW, ErrorCode, Kind, Setting, rst_stream, settings, window_update
from tests.core.grpc_h2.peer import OK, RECORD, Frame, Peer, data, headers, kinds, message, messages_in

LIMITS = Limits(stream_window=100_000, connection_window=200_000)


def started(peer: Peer, *streams: int) -> list[Call]:
    """Calls that have sent their heads."""
    peer.say(*(headers(stream, RECORD) for stream in streams))
    calls = [peer.receivers[stream].call for stream in streams]
    for call in calls:
        call.start()
    peer.sent()
    return calls


def grants(frames: list[Frame], stream: int) -> list[int]:
    """By how much the server lets the peer send more."""
    return [one.number for one in frames if one.kind is Kind.WINDOW_UPDATE and one.stream == stream]


def test_what_a_stream_s_window_does_not_let_out_waits_for_it() -> None:
    peer = Peer()
    peer.say(peer.open_window(10))
    (call,) = started(peer, 1)
    call.send(b"12345", 1)
    assert (messages_in(peer.sent(), 1), call.congested) == (message(b"12345"), False)
    call.send(b"67", 2)
    call.send(b"8", 3)
    assert (peer.sent(), call.congested) == ([], True)
    assert messages_in(peer.say(window_update(1, 8)), 1) == message(b"67") + b"\0"
    assert peer.told(1)[1:] == [("handed", 1), ("handed", 2)]
    assert messages_in(peer.say(window_update(1, 8)), 1) == message(b"8")[1:]
    assert (peer.told(1)[-1], call.congested) == (("handed", 3), False)


def test_a_message_that_fits_does_not_overtake_one_that_waits() -> None:
    peer = Peer()
    peer.say(peer.open_window(10))
    (call,) = started(peer, 1)
    call.send(b"123456")
    call.send(b"")
    assert messages_in(peer.say(window_update(1, 100)), 1) == message(b"123456") + message(b"")


def test_the_end_of_a_call_waits_for_its_messages() -> None:
    peer = Peer()
    peer.say(peer.open_window(0))
    (call,) = started(peer, 1)
    call.send(b"last", 7)
    call.finish()
    assert peer.sent() == []
    assert peer.connection.calls == 1
    body, trailers, reset = peer.say(window_update(1, 9))
    assert (body.payload, peer.headers_of(trailers)["grpc-status"], reset.kind) == (
        message(b"last"),
        OK["grpc-status"],
        Kind.RST_STREAM,
    )
    assert peer.told(1)[-2:] == [("handed", 7), ("closed",)]


def test_a_call_that_waits_and_is_taken_back_is_forgotten() -> None:
    peer = Peer()
    peer.say(peer.open_window(0))
    (call,) = started(peer, 1)
    call.send(b"never", 1)
    call.finish()
    peer.say(rst_stream(1, ErrorCode.CANCEL))
    assert peer.say(window_update(1, 100), window_update(0, 100)) == []
    assert peer.told(1)[1:] == [("closed",)]
    assert not call.congested


def test_an_initial_window_that_shrinks_makes_windows_negative() -> None:
    peer = Peer()
    peer.say(peer.open_window(100))
    (call,) = started(peer, 1)
    call.send(bytes(75))
    peer.sent()
    peer.say(peer.open_window(50))
    call.send(b"x")
    # 100 - 80 - 50 bytes are left: minus 30.
    assert peer.say(window_update(1, 30)) == []
    assert messages_in(peer.say(window_update(1, 1)), 1) == message(b"x")[:1]
    assert messages_in(peer.say(peer.open_window(60)), 1) == message(b"x")[1:]


def test_calls_share_the_connection_s_window_in_turns() -> None:
    peer = Peer()
    peer.say(peer.open_window(1_000_000))
    first, second, third = started(peer, 1, 3, 5)
    for call in (first, second):
        call.send(bytes(100_000))
    # The connection's window is 65,535 bytes at first.
    third.send(b"small")
    sent = peer.sent()
    assert sum(len(one.payload) for one in sent) == 65_535
    # What fits into a frame does not wait for those who fill many.
    assert [one.stream for one in sent] == [5, 1, 3, 1, 3]
    assert messages_in(sent, 5) == message(b"small")
    more = peer.say(window_update(0, 1_000_000))
    assert [len(messages_in(sent + more, stream)) for stream in (1, 3)] == [100_005, 100_005]


def test_a_call_with_megabytes_to_send_does_not_hold_up_the_others() -> None:
    peer = Peer()
    peer.say(peer.open_window(10_000_000), window_update(0, 10_000_000))
    large, small = started(peer, 1, 3)
    large.send(bytes(4_000_000), 1)
    small.send(b"token", 1)
    first = peer.connection.output()
    peer.connection.handed_over()
    assert message(b"token") in first
    assert len(first) < 300_000
    assert (peer.told(3)[-1], peer.told(1)[-1]) == (("handed", 1), ("opened", RECORD))
    assert peer.connection.has_output
    peer.sent()
    assert peer.told(1)[-1] == ("handed", 1)


def test_a_peer_that_is_read_may_go_on_sending() -> None:
    peer = Peer(LIMITS)
    sent = peer.say(headers(1, RECORD), *[data(1, message(bytes(9_995)))] * 40)
    assert sum(grants(sent, 1)) > 400_000 - 100_000
    assert sum(grants(sent, 0)) > 400_000 - 200_000
    assert len(grants(sent, 1)) < 10


def test_a_peer_that_does_not_read_a_stream_may_not_go_on_sending_on_it() -> None:
    peer = Peer(LIMITS)
    peer.say(peer.open_window(0))
    slow, other = started(peer, 1, 3)
    slow.send(b"waits")
    said = [*[data(1, message(bytes(9_995)))] * 9, *[data(3, message(bytes(9_995)))] * 9]
    sent = peer.say(*said)
    assert (grants(sent, 1), len(grants(sent, 3)), len(grants(sent, 0))) == ([], 1, 1)
    assert len(peer.told(1)) == 10
    # It reads, so it may: all that it has sent is granted again.
    assert grants(peer.say(window_update(1, 10)), 1) == [90_000]
    assert not other.congested


def test_nothing_is_granted_on_a_stream_that_has_been_ended() -> None:
    peer = Peer(LIMITS)
    sent = peer.say(
        headers(1, RECORD), *[data(1, message(bytes(9_995)))] * 4, data(1, message(bytes(12_000)), end=True)
    )
    assert grants(sent, 1) == []


def test_padding_counts_and_is_granted_again() -> None:
    peer = Peer(LIMITS)
    padded = bytes([255]) + message(b"x") + bytes(255)
    sent = peer.say(headers(1, RECORD), *[b"\0\1\6\0\x08\0\0\0\1" + padded] * 200)
    # The first frame after which less than half is left.
    assert grants(sent, 1) == [50_042]


def test_a_full_socket_makes_every_call_congested() -> None:
    peer = Peer()
    calls = started(peer, 1, 3)
    peer.connection.pause(True)
    assert [call.congested for call in calls] == [True, True]
    peer.connection.pause(False)
    assert [call.congested for call in calls] == [False, False]


def test_a_window_may_be_as_large_as_it_can() -> None:
    peer = Peer()
    peer.say(headers(1, RECORD))
    assert kinds(peer.say(window_update(1, 2**31 - 1 - 65_535), window_update(0, 2**31 - 1 - 65_535))) == []


@pytest.mark.parametrize("name", ["stream_window", "connection_window"])
def test_windows_cannot_be_smaller_than_peers_expect(name: str) -> None:
    with pytest.raises(ValueError, match="65,535"):
        Limits(**{name: 65_534})


class Windows:
    """What a peer has granted, as it sees it: the windows of the connection and of the streams 1, 3 and 5."""

    def __init__(self) -> None:
        self.initial = DEFAULT_WINDOW
        self.of = dict.fromkeys((0, 1, 3, 5), DEFAULT_WINDOW)

    def open(self, stream: int, increment: int) -> bytes:
        self.of[stream] += increment
        return window_update(stream, increment)

    def set_initial(self, size: int) -> bytes:
        for stream in (1, 3, 5):
            self.of[stream] += size - self.initial
        self.initial = size
        return settings({Setting.INITIAL_WINDOW_SIZE: size})

    def take(self, sent: list[Frame]) -> None:
        for one in sent:
            if one.kind is Kind.DATA:
                for stream in (0, one.stream):
                    self.of[stream] -= len(one.payload)
                    assert self.of[stream] >= 0


sizes = st.sampled_from([0, 1, 30, 1000, 16_379, 16_380, 70_000])
moves = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from([1, 3, 5]), sizes),
        st.tuples(st.just("open"), st.sampled_from([0, 1, 3, 5]), st.sampled_from([1, 100, 20_000, 100_000])),
        st.tuples(st.just("initial"), st.just(0), st.sampled_from([0, 1, 10_000, 65_535, 300_000])),
    ),
    max_size=25,
)


@given(moves, st.booleans())
# What waits for the connection's window, on a stream whose own becomes smaller meanwhile.
@example([("initial", 0, 300_000), ("send", 1, 70_000), ("initial", 0, 1), ("open", 0, 20_000)], True)
def test_no_window_is_overrun_and_all_comes_in_order(moves: list[tuple[str, int, int]], finish: bool) -> None:
    peer, windows = Peer(), Windows()
    calls = dict(zip((1, 3, 5), started(peer, 1, 3, 5), strict=True))
    expected = dict.fromkeys(calls, b"")
    received = dict.fromkeys(calls, b"")
    marks = dict.fromkeys(calls, 0)

    def take(sent: list[Frame]) -> None:
        windows.take(sent)
        for stream in calls:
            received[stream] += messages_in(sent, stream)

    for what, stream, size in moves:
        if what == "send":
            marks[stream] += 1
            text = bytes([marks[stream] % 256]) * size
            calls[stream].send(text, marks[stream])
            expected[stream] += message(text)
            take(peer.sent())
        else:
            take(peer.say(windows.open(stream, size) if what == "open" else windows.set_initial(size)))
    if finish:
        for call in calls.values():
            call.finish()
    take(peer.say(windows.set_initial(5_000_000), windows.open(0, 5_000_000)))
    assert received == expected
    ends = [("closed",)] if finish else []
    for stream in calls:
        assert peer.told(stream)[1:] == [("handed", mark + 1) for mark in range(marks[stream])] + ends
