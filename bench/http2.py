"""The part of HTTP/2 (RFC 9113) that a server of gRPC calls needs for clients on its machine, with prior knowledge.

Frames, SETTINGS, PING and both levels of flow control are here; what the streams mean is
left to subclasses. Header blocks are read by ``hpack`` and written as literals without the dynamic table (RFC 7541
section 6.2.2). We announce receive windows that no run of the bench fills, and therefore never renew them.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple, cast

from hpack import Decoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME = 16_384
DEFAULT_WINDOW = 65_535
MAX_WINDOW = 2**31 - 1

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20

SETTINGS_MAX_CONCURRENT_STREAMS = 3
SETTINGS_INITIAL_WINDOW_SIZE = 4


class Type(IntEnum):
    """Frame types that we read or write; others are skipped, as section 5.5 asks."""

    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Frame(NamedTuple):
    """One frame as it is on the wire, padding included."""

    type: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: Type, flags: int, stream: int, payload: bytes) -> bytes:
    """The bytes of one frame."""
    size = len(payload)
    return struct.pack(">BHBBL", size >> 16, size & 0xFFFF, kind, flags, stream) + payload


def header_block(*fields: tuple[str, str]) -> bytes:
    """A header block of literals without indexing; names and values shorter than 127 bytes."""
    block = bytearray()
    for name, value in fields:
        block += b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return bytes(block)


class FrameReader:
    """Cuts frames out of any split of the bytes, after ``skip`` bytes that are none."""

    def __init__(self, skip: int = 0) -> None:
        self._buffer = bytearray()
        self._start = skip

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that ``data`` completes."""
        self._buffer += data
        position = self._start
        while len(self._buffer) - position >= 9:
            high, low, kind, flags, stream = struct.unpack_from(">BHBBL", self._buffer, position)
            end = position + 9 + (high << 16 | low)
            if len(self._buffer) < end:
                break
            yield Frame(kind, flags, stream & 0x7FFFFFFF, bytes(self._buffer[position + 9 : end]))
            position = end
        self._start = max(position - len(self._buffer), 0)
        del self._buffer[:position]


def content(received: Frame) -> bytes:
    """The payload of a DATA or HEADERS frame without padding and priority fields."""
    payload = received.payload
    if received.flags & PADDED:
        payload = payload[1 : len(payload) - payload[0]]
    if received.type == Type.HEADERS and received.flags & PRIORITY:
        payload = payload[5:]
    return payload


class Outbox:
    """What one stream still has to send: its window, the data that waits for it, and the trailers after the data."""

    __slots__ = ("pending", "trailers", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        self.pending = bytearray()
        self.trailers: bytes | None = None


class Connection(asyncio.Protocol):
    """The server's end of a connection. What is sent during one callback leaves in one write, by :meth:`flush`."""

    def __init__(self) -> None:
        self._reader = FrameReader(skip=len(PREFACE))
        self._decoder = Decoder()
        self._block = bytearray()
        self._block_flags = 0
        self._transport: asyncio.Transport
        self._out: list[bytes] = []
        self._window = DEFAULT_WINDOW
        self._initial_window = DEFAULT_WINDOW
        self.outboxes: dict[int, Outbox] = {}

    def headers_received(self, stream: int, headers: dict[str, str], end: bool) -> None:
        """A header block has arrived; ``end`` says that the peer's half of the stream is over."""
        raise NotImplementedError

    def stream_data_received(self, stream: int, data: bytes, end: bool) -> None:
        """Data of a stream has arrived."""
        raise NotImplementedError

    def stream_reset(self, stream: int) -> None:
        """The peer has cancelled the stream; its outbox is gone."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Announce the windows."""
        self._transport = cast(asyncio.Transport, transport)
        settings = struct.pack(">HLHL", SETTINGS_MAX_CONCURRENT_STREAMS, 1000, SETTINGS_INITIAL_WINDOW_SIZE, MAX_WINDOW)
        self._out.append(frame(Type.SETTINGS, 0, 0, settings))
        self._out.append(frame(Type.WINDOW_UPDATE, 0, 0, struct.pack(">L", MAX_WINDOW - DEFAULT_WINDOW)))
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Handle whole frames and answer them in one write."""
        for received in self._reader.feed(data):
            self._handle(received)
        self.flush()

    def open_stream(self, stream: int) -> None:
        """Give a stream its outbox."""
        self.outboxes[stream] = Outbox(self._initial_window)

    def send_headers(self, stream: int, block: bytes) -> None:
        """Queue a header block that does not end the stream."""
        self._out.append(frame(Type.HEADERS, END_HEADERS, stream, block))

    def send_data(self, stream: int, data: bytes) -> None:
        """Queue data as far as the windows allow; the rest follows when the peer opens them."""
        outbox = self.outboxes[stream]
        size = len(data)
        if not outbox.pending and size <= min(outbox.window, self._window, MAX_FRAME):
            outbox.window -= size
            self._window -= size
            self._out.append(frame(Type.DATA, 0, stream, data))
        else:
            outbox.pending += data
            self._send_pending(stream, outbox)

    def send_trailers(self, stream: int, block: bytes) -> None:
        """End our half of the stream, after what is pending, with a trailer block."""
        self.outboxes[stream].trailers = block
        self._send_pending(stream, self.outboxes[stream])

    def flush(self) -> None:
        """Write what is queued."""
        if self._out and not self._transport.is_closing():
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def _handle(self, received: Frame) -> None:
        match received.type:
            case Type.DATA:
                end = bool(received.flags & END_STREAM)
                self.stream_data_received(received.stream, content(received), end)
            case Type.HEADERS:
                self._block[:] = content(received)
                self._block_flags = received.flags
                self._end_of_block(received)
            case Type.CONTINUATION:
                self._block += received.payload
                self._end_of_block(received)
            case Type.SETTINGS if not received.flags & ACK:
                self._apply_settings(received.payload)
                self._out.append(frame(Type.SETTINGS, ACK, 0, b""))
            case Type.PING if not received.flags & ACK:
                self._out.append(frame(Type.PING, ACK, 0, received.payload))
            case Type.WINDOW_UPDATE:
                self._open_window(received.stream, int.from_bytes(received.payload) & 0x7FFFFFFF)
            case Type.RST_STREAM:
                if self.outboxes.pop(received.stream, None):
                    self.stream_reset(received.stream)

    def _end_of_block(self, received: Frame) -> None:
        # Every block must pass the decoder, wanted or not: its table belongs to the connection (RFC 7541 section 2.2).
        if received.flags & END_HEADERS:
            headers = cast("Iterable[tuple[str, str]]", self._decoder.decode(bytes(self._block)))
            self.headers_received(received.stream, dict(headers), bool(self._block_flags & END_STREAM))

    def _apply_settings(self, payload: bytes) -> None:
        for identifier, value in struct.iter_unpack(">HL", payload):
            if identifier == SETTINGS_INITIAL_WINDOW_SIZE:
                for outbox in self.outboxes.values():
                    outbox.window += value - self._initial_window
                self._initial_window = value
                self._send_all_pending()

    def _open_window(self, stream: int, increment: int) -> None:
        if stream == 0:
            self._window += increment
            self._send_all_pending()
        elif outbox := self.outboxes.get(stream):
            outbox.window += increment
            self._send_pending(stream, outbox)

    def _send_all_pending(self) -> None:
        for stream, outbox in list(self.outboxes.items()):
            self._send_pending(stream, outbox)

    def _send_pending(self, stream: int, outbox: Outbox) -> None:
        while outbox.pending and (size := min(len(outbox.pending), outbox.window, self._window, MAX_FRAME)) > 0:
            outbox.window -= size
            self._window -= size
            self._out.append(frame(Type.DATA, 0, stream, bytes(outbox.pending[:size])))
            del outbox.pending[:size]
        if not outbox.pending and outbox.trailers is not None:
            self._out.append(frame(Type.HEADERS, END_HEADERS | END_STREAM, stream, outbox.trailers))
            del self.outboxes[stream]
