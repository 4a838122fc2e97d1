"""Either end of one HTTP/2 connection that carries gRPC, without I/O: bytes in, what a peer may say, bytes out.

:meth:`Endpoint.receive` takes the peer's bytes in any split; :meth:`Endpoint.output` gives what is to be written. It
knows what gRPC needs of HTTP/2: no push, no priorities, no upgrade from HTTP/1.1, no header tables for what it sends.
What streams are to an end, its subclass says.

Source: RFC 9113.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic

from sidecar.grpc_h2.blocks import PRIORITY_BYTES, Block, Blocks
from sidecar.grpc_h2.faults import ConnectionFault, StreamFault
from sidecar.grpc_h2.frames import (
    ACK,
    DEFAULT_FRAME_SIZE,
    DEFAULT_WINDOW,
    HEAD,
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
from sidecar.grpc_h2.headers import HeaderReader
from sidecar.grpc_h2.incoming import Incoming
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.peer_settings import apply_settings
from sidecar.grpc_h2.sender import Sender
from sidecar.grpc_h2.stream import S

_DATA = int(Kind.DATA)
# A smaller step is worth no frame. Larger ones need no count: the window cannot grow beyond its maximum.
_SMALL_STEP = 1024

_log = logging.getLogger(__name__)


class Endpoint(ABC, Generic[S]):
    """One end; ``wake`` asks for its output to be taken, when something is sent from outside ``receive``."""

    def __init__(
        self, limits: Limits, wake: Callable[[], None], incoming: Incoming, announced: dict[Setting, int]
    ) -> None:
        """``announced`` are the settings that only this end has, beside those that ``limits`` make."""
        self._limits = limits
        self._sender = sender = Sender[S](wake)
        self._calls = sender.calls
        self._headers = HeaderReader(limits.max_header_bytes)
        self._blocks = Blocks(limits.max_header_bytes)
        self._incoming = incoming
        self._settings_seen = False
        self._last_stream = 0
        self._credit = limits.connection_window
        self._low_credit = limits.stream_window >> 1
        self._low_connection_credit = limits.connection_window >> 1
        self._leaving = False
        self._broken = False
        own = {
            Setting.INITIAL_WINDOW_SIZE: limits.stream_window,
            Setting.MAX_HEADER_LIST_SIZE: limits.max_header_bytes,
        }
        sender.frames += [
            settings({**announced, **own}),
            window_update(0, limits.connection_window - DEFAULT_WINDOW),
        ]

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
        if self._broken:
            return
        self._sender.reading = True
        try:
            self._read(data)
        except ConnectionFault as fault:
            _log.warning("a connection was ended (%s): %s", fault.code.name, fault.words)
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
        """Whether the socket is full."""
        self._sender.paused = paused

    def lost(self) -> None:
        """The connection is closed: so are the calls."""
        self._broken = True
        self._sender.lost()

    @abstractmethod
    def _take_data(self, stream: int, flags: int, payload: bytes) -> None:
        """Take DATA, which counts against the windows."""

    @abstractmethod
    def _take_headers(self, stream: int, block: bytes, ends_stream: bool) -> None:
        """Take a header block.

        Raises:
            ConnectionFault, StreamFault: it may not come, or is malformed.
        """

    @abstractmethod
    def _take_end(self, call: S, code: int) -> None:
        """The peer has ended a stream under way by RST_STREAM."""

    @abstractmethod
    def _take_goaway(self, last_stream: int) -> None:
        """The peer looks at no stream of ours after ``last_stream``."""

    @property
    @abstractmethod
    def _last_peer_stream(self) -> int:
        """The last stream of the peer's own that was looked at."""

    def _terminate(self, code: ErrorCode, words: str) -> None:
        self.lost()
        self._sender.put(goaway(self._last_peer_stream, code, words))

    def _read(self, data: bytes) -> None:
        """Cut ``data`` into frames and take each."""
        data = self._incoming.join(data)
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
            if kind == _DATA and self._blocks.open is None:
                self._take_data(stream & STREAM_BITS, flags, data[start:position])
            else:
                self._take(kind, flags, stream & STREAM_BITS, data[start:position])
        if position < end:
            self._incoming.keep(data[position:], wanted)

    def _renew_credit(self) -> None:
        """Let the peer send more on the connection.

        What has come is done with, or a stream's own window counts it, so the connection's never runs out.
        """
        window = self._limits.connection_window
        self._sender.put(window_update(0, window - self._credit))
        self._credit = window

    def _take_late_data(self, stream: int, call: S | None) -> None:
        if call is not None:
            self._reset(stream, ErrorCode.STREAM_CLOSED)
        elif self._is_idle(stream):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "DATA on a stream that was never opened")
        # Else the stream has ended, and the peer may not have known it.

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Take a frame that is not DATA where it may come."""
        self._count_idle_frame()
        self._blocks.check(kind, stream)
        if not self._settings_seen and (kind != Kind.SETTINGS or flags & ACK):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        match kind:
            case Kind.HEADERS:
                self._take_block(self._blocks.begin(flags, stream, payload))
            case Kind.CONTINUATION:
                self._take_block(self._blocks.go_on(flags, payload))
            case Kind.RST_STREAM:
                _check_size(payload, 4)
                self._take_reset(stream, int.from_bytes(payload))
            case Kind.WINDOW_UPDATE:
                _check_size(payload, 4)
                self._take_window_update(stream, int.from_bytes(payload) & STREAM_BITS)
            case Kind.SETTINGS:
                _check_connection(stream)
                self._take_settings(flags, payload)
            case Kind.PING:
                _check_connection(stream)
                _check_size(payload, 8)
                if not flags & ACK:
                    self._sender.put(frame(Kind.PING, ACK, 0, payload))
            case Kind.PRIORITY:
                if stream == 0:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY of the connection")
                _check_size(payload, PRIORITY_BYTES)
            case Kind.GOAWAY:
                _check_connection(stream)
                _check_size(payload[:8], 8)
                self._take_goaway(int.from_bytes(payload[:4]) & STREAM_BITS)
            case Kind.PUSH_PROMISE:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "nobody may push")
            case _:
                # Unknown kinds are ignored (section 5.5).
                pass

    def _count_idle_frame(self) -> None:
        self._sender.idle_frames += 1
        if self._sender.idle_frames > self._limits.max_idle_frames:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many frames without a message")

    def _take_block(self, block: Block | None) -> None:
        if block is None:
            return
        try:
            self._take_headers(block.stream, bytes(block.data), block.ends_stream)
        except StreamFault as fault:
            self._reset(block.stream, fault.code)

    def _take_reset(self, stream: int, code: int) -> None:
        if self._is_idle(stream):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "RST_STREAM on a stream that was never opened")
        if (call := self._calls.get(stream)) is not None:
            self._take_end(call, code)

    def _take_settings(self, flags: int, payload: bytes) -> None:
        if len(payload) % 6 or (flags & ACK and payload):
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "malformed SETTINGS")
        if not flags & ACK:
            self._settings_seen = True
            apply_settings(payload, self._sender)
            self._sender.put(SETTINGS_ACK)

    def _take_window_update(self, stream: int, increment: int) -> None:
        if increment >= _SMALL_STEP:
            self._sender.idle_frames -= 1
        if stream == 0:
            if increment == 0:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a window opened by nothing")
            self._sender.open_window(increment)
        elif self._is_idle(stream):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE on a stream that was never opened")
        elif (call := self._calls.get(stream)) is not None:
            if increment == 0:
                self._reset(stream, ErrorCode.PROTOCOL_ERROR)
            elif not call.open_window(increment):
                self._reset(stream, ErrorCode.FLOW_CONTROL_ERROR)

    def _is_idle(self, stream: int) -> bool:
        """Whether the stream has never been opened; clients open odd ones, in their order (section 5.1.1)."""
        return stream == 0 or not stream & 1 or stream > self._last_stream

    def _reset(self, stream: int, code: ErrorCode) -> None:
        """End a stream, and with it its call."""
        self._sender.put(rst_stream(stream, code))
        if (call := self._calls.get(stream)) is not None:
            call.over()


def _check_size(payload: bytes, size: int) -> None:
    if len(payload) != size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a frame of another size than its kind has")


def _check_connection(stream: int) -> None:
    if stream != 0:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a frame of the connection on a stream")
