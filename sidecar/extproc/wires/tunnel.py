"""The default wire: a raw HTTP/1.1 gRPC-Web call through Envoy's TCP tunnel to its egress listener.

The ingress route forwards body bytes as they are to the egress listener's socket, so the sidecar writes a complete
HTTP/1.1 request as the request body and reads the raw response from the response body. The egress listener's
``grpc_web`` filter turns it into a gRPC call with retries and load balancing. The response's own framing tells an
answer that ended from one that broke, and Triton notices a client that leaves at any time.

Source: Envoy's ``http.tcp`` connection pool and ``grpc_web`` filter; the gRPC-Web protocol page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest

from sidecar.backends.triton.frames import status_of
from sidecar.exchange.commands import TRITON, CallUpstream
from sidecar.extproc import by_hand, messages
from sidecar.extproc.wires.http1 import Http1Error, ResponseReader, size_line
from sidecar.extproc.wires.wire import EnvoysCall, Recipient, WireEnd

# What a content type is called on HTTP/1.1.
_ON_HTTP1 = {"application/grpc": "application/grpc-web+proto"}


class TunnelWire(EnvoysCall):
    """The calls through one tunnel, one after another: of those to Triton there is one."""

    reaches_all = True

    def __init__(self) -> None:
        self._response = ResponseReader()
        self._between_chunks = False
        self._ended = False
        self._is_open = False
        self._is_closed = False
        # Of the call to another host than Triton's: who is told the head of the answer, until it has come.
        self._is_native = False
        self._head_to: Recipient | None = None

    def call(self, call: CallUpstream, request_headers: Mapping[str, str], recipient: Recipient) -> Iterator[bytes]:
        """Open the tunnel, unless it is, and write the request.

        The request side never ends: its end would look like a client gone.
        """
        if self._is_closed:
            recipient.upstream_ended(WireEnd(False, None, None))
            return
        if not self._is_open:
            self._is_open = True
            yield messages.request_headers().SerializeToString()
        native = call.host != TRITON
        head = {
            "host": call.host,
            "content-type": _ON_HTTP1.get(call.content_type, call.content_type),
            "content-length": str(len(call.body)),
            # A native upstream's answer may be followed by another call.
            "connection": "keep-alive" if native else "close",
            **call.headers,
        }
        self._is_native, self._head_to = native, recipient if native else None
        self._response, self._ended = ResponseReader(), False
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        before = f"POST {call.path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")
        for message in messages.request_body(call.body, end=False, head=before):
            yield message.SerializeToString()

    def receive(self, message: bytes) -> tuple[bytes, WireEnd | None]:
        """The call's bytes and end; a message's body is a part of an HTTP/1.1 response."""
        if self._between_chunks:
            # Nearly every message is exactly one chunk, and leaves the response between two.
            prefix = _BEFORE_CHUNK[len(message)]
            if prefix and message.startswith(prefix) and message.endswith(b"\r\n"):
                return message[len(prefix) : -2], None
        if self._ended:
            return b"", None
        body = by_hand.body_of(message)
        return self._receive(ProcessingRequest.FromString(message)) if body is None else self._read(body, False)

    def _receive(self, message: ProcessingRequest) -> tuple[bytes, WireEnd | None]:
        """Any message. The tunnel's own head is synthetic; anything but 200 is the ingress's failure."""
        kind = message.WhichOneof("request")
        if kind == "response_body":
            return self._read(message.response_body.body, message.response_body.end_of_stream)
        if kind == "response_headers":
            status = messages.headers_of(message.response_headers.headers).get(":status", "")
            if status != str(HTTPStatus.OK.value):
                return b"", self._end(False, int(status) if status.isdecimal() else None)
        return b"", None

    def head(self, headers: Mapping[str, str]) -> bytes:
        """The response head for the client, on the tunnel's synthetic one."""
        return bytes(messages.response_headers(headers).SerializeToString())

    def finish(self, data: bytes) -> Iterable[bytes]:
        """End the client's response; Envoy closes the tunnel if it is still open."""
        return (messages.response_body(data, end=True).SerializeToString(),)

    def _read(self, data: bytes, closed: bool) -> tuple[bytes, WireEnd | None]:
        response = self._response
        self._is_closed = closed
        try:
            body = response.feed(data)
        except Http1Error:
            return b"", self._end(False, response.status)
        wanted = response.status == HTTPStatus.OK
        self._between_chunks = wanted and response.between_chunks
        if self._head_to is not None and response.status is not None:
            recipient, self._head_to = self._head_to, None
            recipient.upstream_head(response.status, response.headers)
        end = self._end(response.complete, response.status) if response.complete or closed else None
        return body if wanted or self._is_native else b"", end

    def _end(self, whole: bool, http_status: int | None) -> WireEnd:
        self._between_chunks, self._ended = False, True
        return WireEnd(whole, http_status, status_of(self._response.headers))


def _before_chunk(size: int) -> bytes:
    prefix = by_hand.BEFORE_BODY[size]
    line = size_line(size - len(prefix))
    return prefix + line if prefix and line else b""


_BEFORE_CHUNK = by_hand.BySize(_before_chunk)
"""What stands before the data in a message of a size whose body is one chunk; nothing where none is."""
