"""A client's end of one HTTP/2 connection that carries gRPC, without I/O: calls, bytes out, bytes in, answers.

Source: RFC 9113; the gRPC over HTTP/2 protocol page.
"""

from __future__ import annotations

from collections.abc import Callable

from sidecar.grpc_h2.blocks import unpadded
from sidecar.grpc_h2.endpoint import Endpoint
from sidecar.grpc_h2.faults import ConnectionFault
from sidecar.grpc_h2.frames import END_STREAM, PADDED, PREFACE, STREAM_BITS, ErrorCode, Setting
from sidecar.grpc_h2.incoming import Incoming
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.outgoing import Outgoing
from sidecar.grpc_h2.outgoing_stream import OutgoingStream
from sidecar.grpc_h2.unframer import PREFIX


class ClientConnection(Endpoint[OutgoingStream]):
    """One connection; ``wake`` asks for its output to be taken, when something is sent from outside ``receive``."""

    def __init__(self, limits: Limits, wake: Callable[[], None]) -> None:
        super().__init__(limits, wake, Incoming(preface=False), {Setting.ENABLE_PUSH: 0})
        self._sender.frames.insert(0, PREFACE)

    @property
    def has_room(self) -> bool:
        """Whether a call may be made on it now."""
        return self.is_open and self._settings_seen and len(self._calls) < self._sender.max_streams

    @property
    def is_greeted(self) -> bool:
        """Whether the server has said what it takes, or nothing more comes of it."""
        return self._settings_seen or self._broken

    @property
    def is_open(self) -> bool:
        """Whether calls may be made on it, now or when others have ended."""
        return not (self._leaving or self._broken) and self._last_stream < STREAM_BITS - 1

    def open(self, call: Outgoing) -> None:
        """Make a call, where there is room."""
        self._last_stream += 2 if self._last_stream else 1
        stream = OutgoingStream(call, self._last_stream, self._sender, self._limits)
        self._calls[stream.stream] = stream
        stream.begin()

    def leave(self) -> None:
        """Make no more calls; the connection is terminated when those under way have ended."""
        self._leaving = True

    @property
    def _last_peer_stream(self) -> int:
        # A server opens none.
        return 0

    def _take_data(self, stream: int, flags: int, payload: bytes) -> None:
        size = len(payload)
        self._credit -= size
        if self._credit < self._low_connection_credit:
            self._renew_credit()
        call = self._calls.get(stream)
        if call is None:
            self._count_idle_frame()
            self._take_late_data(stream, None)
            return
        if size > PREFIX.size:
            self._sender.idle_frames = 0
        else:
            # Hardly more than nothing.
            self._count_idle_frame()
        call.credit -= size
        if not call.begun or call.credit < 0:
            self._reset(stream, ErrorCode.FLOW_CONTROL_ERROR if call.begun else ErrorCode.PROTOCOL_ERROR)
            return
        if data := unpadded(payload) if flags & PADDED else payload:
            try:
                call.receive(data)
            except Exception:
                call.fail()
        if flags & END_STREAM:
            # Without trailers, which gRPC never is.
            call.finish({})
        elif call.credit < self._low_credit:
            call.resume()

    def _take_headers(self, stream: int, block: bytes, ends_stream: bool) -> None:
        call = self._calls.get(stream)
        if call is not None:
            call.take_headers(self._headers.response(block), ends_stream)
        elif self._is_idle(stream):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "HEADERS on a stream that was never opened")
        else:
            # Of a call that was cancelled.
            self._headers.skip(block)

    def _take_end(self, call: OutgoingStream, code: int) -> None:
        if code == ErrorCode.REFUSED_STREAM and not call.begun:
            call.refused()
        else:
            call.over()

    def _take_goaway(self, last_stream: int) -> None:
        self._leaving = True
        for stream, call in list(self._calls.items()):
            if stream > last_stream:
                call.refused()
