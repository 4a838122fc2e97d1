"""A server's end of one HTTP/2 connection that carries gRPC, without I/O: bytes in, calls, bytes out.

It tells the calls' receivers what has come.

Source: RFC 9113; the gRPC over HTTP/2 protocol page.
"""

from __future__ import annotations

from collections.abc import Callable

from sidecar.grpc_h2.blocks import unpadded
from sidecar.grpc_h2.call import Call
from sidecar.grpc_h2.endpoint import Endpoint
from sidecar.grpc_h2.faults import ConnectionFault, StreamFault
from sidecar.grpc_h2.frames import END_STREAM, PADDED, STREAM_BITS, ErrorCode, Setting, goaway
from sidecar.grpc_h2.headers import Request, is_grpc, plain_response
from sidecar.grpc_h2.incoming import Incoming
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.receiver import Methods
from sidecar.grpc_h2.status import Status
from sidecar.grpc_h2.unframer import PREFIX


class Connection(Endpoint[Call]):
    """One connection; ``wake`` asks for its output to be taken, when something is sent from outside ``receive``."""

    def __init__(self, methods: Methods, limits: Limits, wake: Callable[[], None]) -> None:
        super().__init__(limits, wake, Incoming(), {Setting.MAX_CONCURRENT_STREAMS: limits.max_concurrent_streams})
        self._methods = methods
        self._retiring = False

    def pause(self, paused: bool) -> None:
        """Whether the socket is full: calls then are congested."""
        super().pause(paused)
        if not paused:
            for call in list(self._calls.values()):
                call.drained()

    def retire(self) -> None:
        """Ask the peer to make further calls elsewhere; those that it makes here all the same are taken.

        RFC 9113, section 6.8: the first of a graceful shutdown's two GOAWAYs, which refuses nothing. Peers close the
        connection when their calls have ended.
        """
        if not (self._retiring or self._leaving):
            self._retiring = True
            self._sender.put(goaway(STREAM_BITS, ErrorCode.NO_ERROR, ""))

    def leave(self) -> None:
        """Take no more calls; the connection is terminated when those under way have ended."""
        if not self._leaving:
            self._leaving = True
            self._sender.put(goaway(self._last_stream, ErrorCode.NO_ERROR, ""))

    @property
    def _last_peer_stream(self) -> int:
        return self._last_stream

    def _take_data(self, stream: int, flags: int, payload: bytes) -> None:
        size = len(payload)
        self._credit -= size
        if self._credit < self._low_connection_credit:
            self._renew_credit()
        call = self._calls.get(stream)
        if call is None or call.half_closed:
            self._count_idle_frame()
            self._take_late_data(stream, call)
            return
        if flags & END_STREAM:
            call.half_closed = True
        try:
            call.credit -= size
            if call.credit < self._low_credit:
                call.renew_credit()
            # Almost every frame is one whole message.
            if (
                not flags
                and call.unframer is None
                and size >= PREFIX.size
                and PREFIX.unpack_from(payload) == (0, size - PREFIX.size)
            ):
                call.receive(payload[PREFIX.size :])
                return
            self._count_idle_frame()
            call.deliver(unpadded(payload) if flags & PADDED else payload)
        except StreamFault as fault:
            self._reset(stream, fault.code)
            return
        if flags & END_STREAM:
            call.half_close()

    def _take_headers(self, stream: int, block: bytes, ends_stream: bool) -> None:
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
        else:
            self._last_stream = stream
            if self._leaving or len(self._calls) >= self._limits.max_concurrent_streams:
                self._headers.skip(block)
                raise StreamFault(ErrorCode.REFUSED_STREAM, "no more streams")
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

    def _take_end(self, call: Call, code: int) -> None:
        call.over()

    def _take_goaway(self, last_stream: int) -> None:
        """It tells of streams that we would open, and a server of gRPC opens none."""
