"""A server's end of one HTTP/2 connection that carries gRPC, without I/O: bytes in, calls, bytes out.

:meth:`Connection.receive` takes the peer's bytes in any split and tells the calls' receivers what has come;
:meth:`Connection.output` gives what is to be written. It knows what gRPC needs of HTTP/2: no push, no priorities, no
upgrade from HTTP/1.1, no header tables for responses.

Source: RFC 9113; the gRPC over HTTP/2 protocol page.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from struct import iter_unpack, unpack
from typing import NamedTuple

from sidecar.grpc_h2.call import Call
from sidecar.grpc_h2.faults import ConnectionFault, StreamFault
from sidecar.grpc_h2.frames import (
    ACK,
    DEFAULT_FRAME_SIZE,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    HEAD,
    MAX_FRAME_SIZE,
    MAX_WINDOW,
    PADDED,
    PREFACE,
    PRIORITY_FIELDS,
    SETTINGS_ACK,
    STREAM_BITS,
    ErrorCode,
    Kind,
    Setting,
    frame,
    goaway,
    rst_stream,
    settings,
    window_update,
)
from sidecar.grpc_h2.headers import HeaderReader, Request, is_grpc, plain_response
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.receiver import Methods
from sidecar.grpc_h2.sender import Sender
from sidecar.grpc_h2.status import Status
from sidecar.grpc_h2.unframer import PREFIX

_DATA = int(Kind.DATA)
_PRIORITY_BYTES = 5
# A smaller step is worth no frame. Larger ones need no count: the window cannot grow beyond its maximum.
_SMALL_STEP = 1024

_log = logging.getLogger(__name__)


class _Block(NamedTuple):
    """A header block under way."""

    stream: int
    ends_stream: bool
    data: bytearray


class Connection:
    """One connection; ``wake`` asks for its output to be taken, when something is sent from outside ``receive``."""

    def __init__(self, methods: Methods, limits: Limits, wake: Callable[[], None]) -> None:
        self._methods = methods
        self._limits = limits
        self._sender = sender = Sender(wake)
        self._calls = sender.calls
        self._headers = HeaderReader(limits.max_header_bytes)
        self._block: _Block | None = None
        # The peer's bytes that make no frame yet, and how many it takes to look at them again.
        self._partial = bytearray()
        self._wanted = len(PREFACE)
        self._preface_seen = False
        self._settings_seen = False
        self._last_stream = 0
        self._credit = limits.connection_window
        self._leaving = False
        self._broken = False
        announced = {
            Setting.MAX_CONCURRENT_STREAMS: limits.max_concurrent_streams,
            Setting.INITIAL_WINDOW_SIZE: limits.stream_window,
            Setting.MAX_HEADER_LIST_SIZE: limits.max_header_bytes,
        }
        sender.frames += [settings(announced), window_update(0, limits.connection_window - DEFAULT_WINDOW)]

    @property
    def terminated(self) -> bool:
        """Whether the connection is to be closed once the output has been written."""
        return self._broken or (self._leaving and not self._calls)

    @property
    def calls(self) -> int:
        """How many calls are under way."""
        return len(self._calls)

    def receive(self, data: bytes) -> None:
        """Take bytes of the peer; any split of them does the same. Whatever they are, nothing is raised."""
        if self.terminated:
            return
        self._sender.reading = True
        try:
            self._read(data)
        except ConnectionFault as fault:
            self._terminate(fault.code, fault.words)
        finally:
            self._sender.reading = False

    @property
    def has_output(self) -> bool:
        """Whether :meth:`output` would give something."""
        return self._sender.has_output

    def output(self) -> bytes:
        """What is to be written now; it may leave more for the next time, so that no call holds up the others."""
        return self._sender.output()

    def handed_over(self) -> None:
        """The last output has been written: tell the calls."""
        self._sender.handed_over()

    def pause(self, paused: bool) -> None:
        """Whether the socket is full: calls then are congested."""
        self._sender.paused = paused

    def leave(self) -> None:
        """Take no more calls; the connection is terminated when those under way have ended."""
        if not self._leaving:
            self._leaving = True
            self._sender.put(goaway(self._last_stream, ErrorCode.NO_ERROR, ""))

    def lost(self) -> None:
        """The connection is closed: so are the calls."""
        self._broken = True
        self._sender.lost()

    def _terminate(self, code: ErrorCode, words: str) -> None:
        self.lost()
        self._sender.put(goaway(self._last_stream, code, words))

    def _read(self, data: bytes) -> None:
        """Cut ``data`` into frames and take each."""
        if self._partial:
            self._partial += data
            if len(self._partial) < self._wanted:
                return
            data = bytes(self._partial)
            self._partial.clear()
        if not self._preface_seen:
            data = self._skip_preface(data)
        position, end, wanted = 0, len(data), HEAD.size
        while end - position >= HEAD.size:
            high, low, kind, flags, stream = HEAD.unpack_from(data, position)
            size = high << 8 | low
            if size > DEFAULT_FRAME_SIZE:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a frame is too large")
            start = position + HEAD.size
            if start + size > end:
                wanted = HEAD.size + size
                break
            position = start + size
            if kind == _DATA and self._block is None:
                self._take_data(stream & STREAM_BITS, flags, data[start:position])
            else:
                self._take(kind, flags, stream & STREAM_BITS, data[start:position])
        if position < end:
            self._partial += data[position:] if position else data
            self._wanted = wanted

    def _skip_preface(self, data: bytes) -> bytes:
        """What follows the preface; nothing, while it is not whole."""
        if not PREFACE.startswith(data[: len(PREFACE)]):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "no HTTP/2 preface")
        self._preface_seen = len(data) >= len(PREFACE)
        if not self._preface_seen:
            self._partial += data
        return data[len(PREFACE) :]

    def _take_data(self, stream: int, flags: int, payload: bytes) -> None:
        size = len(payload)
        self._credit -= size
        if self._credit < self._limits.connection_window >> 1:
            self._renew_credit()
        call = self._calls.get(stream)
        if call is None or call.half_closed:
            self._count_idle_frame()
            self._take_late_data(stream, call)
            return
        if flags & END_STREAM:
            call.half_closed = True
        try:
            call.spend(size)
            if not flags and call.unframer is None and _is_one_message(payload, size):
                call.receive(payload[PREFIX.size :])
                return
            self._count_idle_frame()
            call.deliver(_unpadded(payload) if flags & PADDED else payload)
        except StreamFault as fault:
            self._reset(stream, fault.code)
            return
        if flags & END_STREAM:
            call.half_close()

    def _renew_credit(self) -> None:
        """Let the peer send more on the connection.

        What has come is done with, or a stream's own window counts it, so the connection's never runs out.
        """
        window = self._limits.connection_window
        self._sender.put(window_update(0, window - self._credit))
        self._credit = window

    def _take_late_data(self, stream: int, call: Call | None) -> None:
        if call is not None:
            self._reset(stream, ErrorCode.STREAM_CLOSED)
        elif self._is_idle(stream):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "DATA on a stream that was never opened")
        # Else the stream has ended, and the peer may not have known it.

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Take a frame that is no DATA in its place."""
        self._count_idle_frame()
        if self._block is not None and (kind != Kind.CONTINUATION or stream != self._block.stream):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a header block was interrupted")
        if not self._settings_seen and (kind != Kind.SETTINGS or flags & ACK):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        match kind:
            case Kind.HEADERS:
                self._begin_block(flags, stream, payload)
            case Kind.CONTINUATION:
                self._continue_block(flags, payload)
            case Kind.RST_STREAM:
                self._take_reset(stream, payload)
            case Kind.SETTINGS:
                self._take_settings(flags, stream, payload)
            case Kind.WINDOW_UPDATE:
                self._take_window_update(stream, payload)
            case Kind.PING:
                self._take_ping(flags, stream, payload)
            case Kind.PRIORITY:
                if stream == 0:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY of the connection")
                if len(payload) != _PRIORITY_BYTES:
                    raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a malformed PRIORITY")
            case Kind.GOAWAY:
                if stream != 0:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "GOAWAY of a stream")
                if len(payload) < 8:
                    raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a malformed GOAWAY")
                # It tells of streams that we would open, and a server of gRPC opens none.
            case Kind.PUSH_PROMISE:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a client cannot push")
            case _:
                # Unknown kinds are ignored (section 5.5).
                pass

    def _count_idle_frame(self) -> None:
        self._sender.idle_frames += 1
        if self._sender.idle_frames > self._limits.max_idle_frames:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many frames without a message")

    def _begin_block(self, flags: int, stream: int, payload: bytes) -> None:
        if not stream & 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "HEADERS on a stream that clients cannot open")
        block = _unpadded(payload) if flags & PADDED else payload
        if flags & PRIORITY_FIELDS:
            if len(block) < _PRIORITY_BYTES:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS without their priority fields")
            block = block[_PRIORITY_BYTES:]
        self._block = _Block(stream, bool(flags & END_STREAM), bytearray())
        self._continue_block(flags, block)

    def _continue_block(self, flags: int, piece: bytes) -> None:
        block = self._block
        if block is None:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION of nothing")
        block.data.extend(piece)
        if len(block.data) > self._limits.max_header_bytes:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "the headers are too large")
        if flags & END_HEADERS:
            self._block = None
            try:
                self._take_block(block.stream, bytes(block.data), block.ends_stream)
            except StreamFault as fault:
                self._reset(block.stream, fault.code)

    def _take_block(self, stream: int, block: bytes, ends_stream: bool) -> None:
        call = self._calls.get(stream)
        if call is not None:
            self._headers.trailers(block)
            if call.half_closed:
                raise StreamFault(ErrorCode.STREAM_CLOSED, "trailers after the end")
            if not ends_stream:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "headers in the middle of a stream")
            call.half_close()
        elif not self._is_idle(stream):
            if not ends_stream:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a stream was opened out of order, or twice")
            # Trailers of a stream that has ended, which the peer may not have known.
            self._headers.skip(block)
        elif self._leaving or len(self._calls) >= self._limits.max_concurrent_streams:
            self._headers.skip(block)
            self._last_stream = stream
            raise StreamFault(ErrorCode.REFUSED_STREAM, "no more streams")
        else:
            self._last_stream = stream
            self._open(stream, self._headers.request(block), ends_stream)

    def _open(self, stream: int, request: Request, ends_stream: bool) -> None:
        call = Call(stream, request.path, request.metadata, self._sender, self._limits)
        self._calls[stream] = call
        call.half_closed = ends_stream
        method = self._methods.get(request.path)
        if request.method != "POST":
            call.answer_plainly(plain_response(405))
        elif not is_grpc(request):
            call.answer_plainly(plain_response(415))
        elif method is None:
            call.finish(Status.UNIMPLEMENTED, f"there is no method {request.path}")
        else:
            try:
                call.receiver = method(call)
            except Exception:
                call.fail()
        if ends_stream:
            call.half_close()

    def _take_reset(self, stream: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a malformed RST_STREAM")
        if self._is_idle(stream):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "RST_STREAM on a stream that was never opened")
        if (call := self._calls.get(stream)) is not None:
            call.over()

    def _take_settings(self, flags: int, stream: int, payload: bytes) -> None:
        if stream != 0:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS of a stream")
        if len(payload) % 6 or (flags & ACK and payload):
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "malformed SETTINGS")
        if flags & ACK:
            return
        self._settings_seen = True
        for setting, value in iter_unpack(">HL", payload):
            self._set(setting, value)
        self._sender.put(SETTINGS_ACK)

    def _set(self, setting: int, value: int) -> None:
        match setting:
            case Setting.INITIAL_WINDOW_SIZE:
                if value > MAX_WINDOW:
                    raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "the initial window is too large")
                self._sender.set_initial_window(value)
            case Setting.MAX_FRAME_SIZE:
                if not DEFAULT_FRAME_SIZE <= value <= MAX_FRAME_SIZE:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a frame size that is not allowed")
                # Larger frames would only let one call hold up the others for longer.
            case Setting.ENABLE_PUSH:
                if value > 1:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "ENABLE_PUSH is neither 0 nor 1")
            case _:
                # The others limit what we do not do: push, tables and long lists of headers.
                pass

    def _take_window_update(self, stream: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a malformed WINDOW_UPDATE")
        increment = unpack(">L", payload)[0] & MAX_WINDOW
        if increment >= _SMALL_STEP:
            self._sender.idle_frames -= 1
        if stream == 0:
            if increment == 0:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a window opened by nothing")
            self._sender.open_window(increment)
            return
        if self._is_idle(stream):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE on a stream that was never opened")
        call = self._calls.get(stream)
        if call is None:
            return
        if increment == 0:
            self._reset(stream, ErrorCode.PROTOCOL_ERROR)
        elif not call.open_window(increment):
            self._reset(stream, ErrorCode.FLOW_CONTROL_ERROR)

    def _take_ping(self, flags: int, stream: int, payload: bytes) -> None:
        if stream != 0:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PING of a stream")
        if len(payload) != 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a malformed PING")
        if not flags & ACK:
            self._sender.put(frame(Kind.PING, ACK, 0, payload))

    def _is_idle(self, stream: int) -> bool:
        """Whether the stream has never been opened; clients open odd ones, in their order (section 5.1.1)."""
        return stream == 0 or not stream & 1 or stream > self._last_stream

    def _reset(self, stream: int, code: ErrorCode) -> None:
        """End a stream, and with it its call."""
        self._sender.put(rst_stream(stream, code))
        if (call := self._calls.get(stream)) is not None:
            call.over()


def _is_one_message(payload: bytes, size: int) -> bool:
    """Whether a frame is exactly one message, as almost every frame is."""
    return size >= PREFIX.size and PREFIX.unpack_from(payload) == (0, size - PREFIX.size)


def _unpadded(payload: bytes) -> bytes:
    """The payload of a padded frame without its padding (section 6.1).

    Raises:
        ConnectionFault: there is more padding than payload.
    """
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - payload[0]]
