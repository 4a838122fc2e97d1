"""The fuzz target of both ends of a connection: ``python -m tests.fuzz.http2 [options of libFuzzer]``.

Whatever a peer says: nothing is raised, any split of it does the same, what is sent is whole frames, the last of
them GOAWAY where there is one, and every call that begins ends once and is told nothing after that. A client's call
may be made again instead, where the server has not looked at it.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import atheris

with atheris.instrument_imports(include=["sidecar.grpc_h2"]):
    from sidecar.grpc_h2 import Limits
    from sidecar.grpc_h2.frames import DEFAULT_FRAME_SIZE, DEFAULT_WINDOW, ErrorCode, Kind, Setting, frame
    from sidecar.grpc_h2.frames import settings as settings_frame
from tests.core.grpc_h2 import server_peer
from tests.core.grpc_h2.peer import ECHO, FAIL, GREETING, RECORD, REQUEST, Frame, Peer, block, data, headers, message
from tests.core.splits import split_at

LIMITS = Limits(
    max_concurrent_streams=3,
    max_message_bytes=300,
    max_header_bytes=600,
    stream_window=DEFAULT_WINDOW,
    connection_window=DEFAULT_WINDOW,
    max_idle_frames=40,
)
PATHS = [ECHO, ECHO, RECORD, FAIL, "/none"]
STREAMS = [1, 1, 3, 3, 5, 7, 9, 0, 2]
WINDOWS = [0, 1, 9, 1024, DEFAULT_WINDOW, 2**31 - 1, 2**31]
MOST_FRAMES = 30


HEADS = [
    server_peer.HEAD,
    server_peer.HEAD,
    {**server_peer.HEAD, "grpc-status": "8"},
    {":status": "103"},
    {":status": "404", "x": "y"},
    {},
]
CALLS = {1: 5, 3: 100_000, 5: 0}
"""The sizes of the calls that the client makes, by their streams; the last is cancelled."""
NO_GRANTS = {Kind.RST_STREAM, Kind.GOAWAY, Kind.PING}
"""What is sent whatever the reads are; grants and the pieces of a large body depend on them."""


class _Talk:
    """What a peer says, made of the fuzzer's choices: much of it nearly right."""

    def __init__(self, choices: Any, *, server: bool) -> None:
        """``server`` is whether the peer is one."""
        self._choices = choices
        self._server = server

    def frame(self) -> bytes:
        choose = self._choices
        stream = choose.PickValueInList(STREAMS)
        match choose.ConsumeIntInRange(0, 9):
            case 0 | 1 if self._server:
                return server_peer.head(stream, choose.PickValueInList(HEADS), end=choose.ConsumeBool())
            case 0 | 1:
                return headers(stream, choose.PickValueInList(PATHS), end=choose.ConsumeBool())
            case 2 | 3 | 4:
                messages = b"".join(message(choose.ConsumeBytes(20)) for _ in range(choose.ConsumeIntInRange(0, 3)))
                cut = choose.ConsumeIntInRange(0, len(messages) + 5)
                return data(stream, messages[:cut], end=choose.ConsumeBool())
            case 5:
                return settings_frame({choose.PickValueInList(list(Setting)): choose.PickValueInList(WINDOWS)})
            case 6:
                return frame(Kind.WINDOW_UPDATE, 0, stream, choose.PickValueInList(WINDOWS).to_bytes(4))
            case 7:
                fields = block(server_peer.HEAD if self._server else REQUEST)
                cut = choose.ConsumeIntInRange(0, len(fields))
                begun = frame(Kind.HEADERS, choose.PickValueInList([0, 1, 8]), stream, fields[:cut])
                return begun + frame(Kind.CONTINUATION, choose.PickValueInList([0, 4]), stream, fields[cut:])
            case 8:
                return frame(Kind.RST_STREAM, 0, stream, choose.PickValueInList(list(ErrorCode)).to_bytes(4))
        kind, flags = choose.PickValueInList(list(Kind)), choose.ConsumeIntInRange(0, 255)
        return frame(kind, flags, stream, choose.ConsumeBytes(choose.ConsumeIntInRange(0, 40)))


def talk(said: bytes) -> None:
    """Let a server or a client hear what is made of ``said``, whole and in pieces."""
    choices = atheris.FuzzedDataProvider(said)
    server = choices.ConsumeBool()
    make = _Talk(choices, server=server)
    cuts = [choices.ConsumeIntInRange(0, 2000) for _ in range(6)]
    frames: list[bytes] = []
    while choices.remaining_bytes() and len(frames) < MOST_FRAMES:
        frames.append(make.frame())
    greeted = choices.ConsumeIntInRange(0, 19) > 0
    if server:
        _tell_client((server_peer.GREETING if greeted else b"") + b"".join(frames), cuts)
    else:
        _tell_server((GREETING if greeted else b"") + b"".join(frames), cuts)


def _tell_client(whole: bytes, cuts: list[int]) -> None:
    peer, in_pieces = _calling(), _calling()
    sent = peer.say(whole)
    _check_frames(sent)
    pieces = in_pieces.say(*split_at(whole, cuts))
    assert [one for one in pieces if one.kind in NO_GRANTS] == [one for one in sent if one.kind in NO_GRANTS]
    assert in_pieces.events == peer.events
    peer.connection.lost()
    ended = [stream for stream, what, *_ in peer.events if what == "ended"]
    assert len(ended) == len(set(ended)) == 2 - len(peer.again)
    assert 5 not in {stream for stream, *_ in peer.events}
    assert all(peer.told(stream)[-1][0] == "ended" for stream in ended)


def _calling() -> server_peer.ServerPeer:
    """A client with its calls."""
    peer = server_peer.ServerPeer(LIMITS, greet=False)
    for stream, size in CALLS.items():
        call = peer.call(bytes(size))
        if stream == max(CALLS):
            call.cancel()
    return peer


def _tell_server(whole: bytes, cuts: list[int]) -> None:
    peer = Peer(LIMITS, greet=False)
    sent = peer.say(whole)
    _check_frames(sent)
    assert peer.connection.calls <= LIMITS.max_concurrent_streams
    in_pieces = Peer(LIMITS, greet=False)
    assert in_pieces.say(*split_at(whole, cuts)) == sent
    assert in_pieces.events == peer.events
    peer.connection.lost()
    _check_calls(peer)


def _check_frames(sent: list[Frame]) -> None:
    assert all(len(one.payload) <= DEFAULT_FRAME_SIZE for one in sent)
    goaways = [index for index, one in enumerate(sent) if one.kind is Kind.GOAWAY]
    assert goaways in ([], [len(sent) - 1])


def _check_calls(peer: Peer) -> None:
    for stream in peer.receivers:
        told = [words[0] for words in peer.told(stream)]
        assert told[0] == "opened"
        assert told.count("closed") == 1
        assert told[-1] == "closed"
        assert told.count("half closed") <= 1
        assert "received" not in told[told.index("half closed") :] if "half closed" in told else True


if __name__ == "__main__":
    # Methods that fail are logged with their traces, which would be most of the work.
    logging.disable()
    atheris.Setup(sys.argv, talk)
    atheris.Fuzz()
