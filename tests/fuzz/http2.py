"""The fuzz target of the gRPC server's connection: ``python -m tests.fuzz.http2 [options of libFuzzer]``.

Whatever a peer says: nothing is raised, any split of it does the same, what is sent is whole frames, the last of
them GOAWAY where there is one, and every call that begins ends once and is told nothing after that.
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


class _Talk:
    """What a peer says, made of the fuzzer's choices: much of it nearly right."""

    def __init__(self, choices: Any) -> None:
        self._choices = choices

    def frame(self) -> bytes:
        choose = self._choices
        stream = choose.PickValueInList(STREAMS)
        match choose.ConsumeIntInRange(0, 9):
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
                fields = block(REQUEST)
                cut = choose.ConsumeIntInRange(0, len(fields))
                begun = frame(Kind.HEADERS, choose.PickValueInList([0, 1, 8]), stream, fields[:cut])
                return begun + frame(Kind.CONTINUATION, choose.PickValueInList([0, 4]), stream, fields[cut:])
            case 8:
                return frame(Kind.RST_STREAM, 0, stream, choose.PickValueInList(list(ErrorCode)).to_bytes(4))
        kind, flags = choose.PickValueInList(list(Kind)), choose.ConsumeIntInRange(0, 255)
        return frame(kind, flags, stream, choose.ConsumeBytes(choose.ConsumeIntInRange(0, 40)))


def talk(said: bytes) -> None:
    """Let a server hear what is made of ``said``, whole and in pieces."""
    choices = atheris.FuzzedDataProvider(said)
    make = _Talk(choices)
    cuts = [choices.ConsumeIntInRange(0, 2000) for _ in range(6)]
    frames: list[bytes] = []
    while choices.remaining_bytes() and len(frames) < MOST_FRAMES:
        frames.append(make.frame())
    whole = (GREETING if choices.ConsumeIntInRange(0, 19) else b"") + b"".join(frames)
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
