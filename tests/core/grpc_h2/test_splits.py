"""However the peer's bytes are cut, the same is told to the receivers and the same is sent."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sidecar.grpc_h2 import Limits
from sidecar.grpc_h2.frames import (
    END_HEADERS,
    END_STREAM,
    PADDED,
    ErrorCode,
    Kind,
    Setting,
    frame,
    rst_stream,
    settings,
    window_update,
)
from tests.core.grpc_h2.peer import ECHO, GREETING, RECORD, REQUEST, Frame, Peer, block, data, headers, message
from tests.core.splits import split_at

LIMITS = Limits(max_concurrent_streams=4, max_message_bytes=500, max_header_bytes=1000, stream_window=65_535)

streams = st.sampled_from([1, 1, 1, 3, 3, 5, 7, 9, 11, 0, 2])
messages = st.lists(st.binary(max_size=40), max_size=4).map(lambda many: b"".join(map(message, many)))
fields = st.sampled_from([{}, {"x-name": "value"}, {":path": RECORD}, {":method": "GET"}, {"A": "b"}])


def in_pieces(stream: int, whole: bytes, cut: int) -> bytes:
    """A header block in two frames."""
    return frame(Kind.HEADERS, 0, stream, whole[:cut]) + frame(Kind.CONTINUATION, END_HEADERS, stream, whole[cut:])


steps = st.one_of(
    st.builds(headers, streams, st.sampled_from([ECHO, ECHO, RECORD, "/none"]), end=st.booleans()),
    st.builds(lambda s, more, cut: in_pieces(s, block({**REQUEST, **more}), cut), streams, fields, st.integers(0, 60)),
    st.builds(data, streams, messages, end=st.booleans()),
    st.builds(data, streams, st.binary(max_size=20), end=st.booleans()),
    st.builds(
        lambda s, m, p: frame(Kind.DATA, PADDED, s, bytes([p]) + m + bytes(p)), streams, messages, st.integers(0, 255)
    ),
    st.builds(rst_stream, streams, st.sampled_from(ErrorCode)),
    st.builds(window_update, streams, st.sampled_from([0, 1, 100, 100_000, 2**31 - 1])),
    st.builds(lambda size: settings({Setting.INITIAL_WINDOW_SIZE: size}), st.sampled_from([0, 10, 65_535])),
    st.builds(frame, st.sampled_from(Kind), st.sampled_from([0, 1, 4, 5, 8, 32]), streams, st.binary(max_size=12)),
    st.just(frame(Kind.PING, 0, 0, b"12345678")),
    st.just(frame(Kind.HEADERS, END_HEADERS | END_STREAM, 1, block({"x-late": "1"}))),
    st.binary(max_size=30),
)
conversations = st.lists(steps, max_size=25).map(b"".join)


def follow(pieces: list[bytes]) -> tuple[list[tuple[Any, ...]], list[Frame], bool]:
    """What comes of a conversation."""
    peer = Peer(LIMITS, greet=False)
    sent = peer.say(*pieces)
    return peer.events, sent, peer.connection.terminated


@given(conversations, st.lists(st.integers(0, 1500), max_size=12))
def test_any_split_gives_the_same(said: bytes, cuts: list[int]) -> None:
    whole = GREETING + said
    assert follow(split_at(whole, cuts)) == follow([whole])


@given(conversations)
def test_so_does_a_byte_at_a_time(said: bytes) -> None:
    whole = GREETING + said
    assert follow([whole[at : at + 1] for at in range(len(whole))]) == follow([whole])


@given(conversations)
def test_whatever_is_said_every_call_that_was_opened_is_closed_once(said: bytes) -> None:
    peer = Peer(LIMITS)
    peer.say(said)
    peer.connection.lost()
    opened = [stream for stream, what, *_ in peer.events if what == "opened"]
    closed = [stream for stream, what, *_ in peer.events if what == "closed"]
    assert sorted(opened) == sorted(closed)
    assert all(peer.told(stream)[-1] == ("closed",) for stream in opened)
