"""A client's end of a connection, in memory, that may say whatever it likes, and methods that note what they see."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hpack import Decoder, Encoder

from sidecar.grpc_h2 import Call, Connection, Limits, Methods, Status
from sidecar.grpc_h2.endpoint import Endpoint
from sidecar.grpc_h2.frames import END_HEADERS, END_STREAM, HEAD, PREFACE, ErrorCode, Kind, Setting, frame, settings

ECHO, RECORD, FAIL = "/test.Service/Echo", "/test.Service/Record", "/test.Service/Fail"
GREETING = PREFACE + settings({})
REQUEST = {
    ":method": "POST",
    ":scheme": "http",
    ":path": ECHO,
    ":authority": "test",
    "content-type": "application/grpc",
    "te": "trailers",
}


def message(data: bytes) -> bytes:
    """A gRPC message in its frame."""
    return struct.pack(">BL", 0, len(data)) + data


def block(fields: Mapping[str, str], encoder: Encoder | None = None) -> bytes:
    """A header block; without an ``encoder`` it leaves the peer's table alone."""
    if encoder is not None:
        return bytes(encoder.encode(list(fields.items())))
    return bytes(Encoder().encode([(name, value, True) for name, value in fields.items()], huffman=False))


def headers(stream: int, path: str = ECHO, *, end: bool = False, changes: Mapping[str, str] | None = None) -> bytes:
    """The HEADERS frame that opens a stream."""
    flags = END_HEADERS | END_STREAM if end else END_HEADERS
    return frame(Kind.HEADERS, flags, stream, block({**REQUEST, ":path": path, **(changes or {})}))


def data(stream: int, payload: bytes, *, end: bool = False) -> bytes:
    """A DATA frame."""
    return frame(Kind.DATA, END_STREAM if end else 0, stream, payload)


def call(stream: int, *messages: bytes, path: str = ECHO) -> bytes:
    """A whole call: headers, each message in a frame, and the end with the last one."""
    frames = [data(stream, message(one), end=index == len(messages) - 1) for index, one in enumerate(messages)]
    return headers(stream, path, end=not messages) + b"".join(frames)


class Frame(NamedTuple):
    """One frame of the server."""

    kind: Kind
    flags: int
    stream: int
    payload: bytes

    @property
    def code(self) -> ErrorCode:
        """Why RST_STREAM or GOAWAY was sent."""
        return ErrorCode(int.from_bytes(self.payload[4:8] if self.kind is Kind.GOAWAY else self.payload))

    @property
    def number(self) -> int:
        """The increment of WINDOW_UPDATE."""
        return int.from_bytes(self.payload)


def frames_in(data: bytes) -> Iterator[Frame]:
    """The frames of some output; each must be whole."""
    while data:
        high, low, kind, flags, stream = HEAD.unpack_from(data)
        end = HEAD.size + (high << 8 | low)
        assert len(data) >= end
        yield Frame(Kind(kind), flags, stream, data[HEAD.size : end])
        data = data[end:]


class Seen:
    """The receiver of a call: it notes what it is told, and ``echo`` sends every message back, numbered by marks."""

    def __init__(self, call: Call, events: list[tuple[Any, ...]], *, echo: bool) -> None:
        self.call, self._events, self._echo, self._count = call, events, echo, 0
        self.drains = 0
        self._note("opened", call.path)

    def _note(self, *words: object) -> None:
        self._events.append((self.call.stream, *words))

    def received(self, message: bytes) -> None:
        self._note("received", message)
        if self._echo:
            self._count += 1
            self.call.send(message, self._count)

    def half_closed(self) -> None:
        self._note("half closed")
        if self._echo:
            self.call.finish()

    def handed(self, mark: int) -> None:
        self._note("handed", mark)

    def drained(self) -> None:
        self.drains += 1

    def closed(self) -> None:
        self._note("closed")


class Talk:
    """What is said to ``connection``, an end of ours, and what it says."""

    connection: Endpoint[Any]

    def say(self, *pieces: bytes) -> list[Frame]:
        """Let it read ``pieces``; what it writes then, all of it."""
        for piece in pieces:
            self.connection.receive(piece)
        return self.sent()

    def sent(self) -> list[Frame]:
        """What it writes now, all of it."""
        written = []
        while self.connection.has_output:
            written.append(self.connection.output())
            self.connection.handed_over()
        return list(frames_in(b"".join(written)))


class Peer(Talk):
    """A connection that has been greeted, and what was seen of it so far."""

    connection: Connection

    def __init__(self, limits: Limits | None = None, *, greet: bool = True) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.receivers: dict[int, Seen] = {}
        self.wakes = 0
        methods: Methods = {
            ECHO: lambda call: self._see(call, echo=True),
            RECORD: lambda call: self._see(call, echo=False),
            FAIL: self._fail,
        }
        self.connection = Connection(methods, limits or Limits(), self._wake)
        self._decoder = Decoder()
        if greet:
            self.connection.receive(GREETING)
            self.sent()

    def _see(self, call: Call, *, echo: bool) -> Seen:
        seen = self.receivers[call.stream] = Seen(call, self.events, echo=echo)
        return seen

    def _fail(self, call: Call) -> Seen:
        raise RuntimeError("a fault of the application")

    def _wake(self) -> None:
        self.wakes += 1

    def told(self, stream: int) -> list[tuple[Any, ...]]:
        """What the receiver of ``stream`` was told."""
        return [tuple(words) for number, *words in self.events if number == stream]

    def headers_of(self, frame: Frame) -> dict[str, str]:
        """The fields of a header block; blocks must be read in their order."""
        assert frame.kind is Kind.HEADERS
        return dict(self._decoder.decode(frame.payload))  # type: ignore[arg-type]

    def open_window(self, size: int) -> bytes:
        """SETTINGS with which each stream begins with a window of ``size``."""
        return settings({Setting.INITIAL_WINDOW_SIZE: size})


def kinds(frames: list[Frame]) -> list[Kind]:
    """The kinds of frames, in their order."""
    return [frame.kind for frame in frames]


def messages_in(frames: list[Frame], stream: int) -> bytes:
    """The data that was sent on ``stream``."""
    return b"".join(frame.payload for frame in frames if frame.kind is Kind.DATA and frame.stream == stream)


OK = {"grpc-status": str(int(Status.OK))}
