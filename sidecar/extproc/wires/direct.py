"""The second wire: the client's request becomes the call, on a route to the upstream; there is no egress listener.

It costs less than the tunnel, but Envoy tells the sidecar nothing when the upstream dies in mid-stream: the client then
sees a truncated answer, and the sidecar cannot tell it from a client that left.

Source: the gRPC over HTTP/2 protocol page; Envoy's ext_proc in FULL_DUPLEX_STREAMED mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest

from sidecar.backends.triton.frames import status_of
from sidecar.exchange.commands import CallUpstream
from sidecar.extproc import by_hand, messages
from sidecar.extproc.wires.wire import EnvoysCall, Recipient, WireEnd

_GRPC_HEADERS = ("grpc-accept-encoding", "grpc-encoding", "grpc-status", "grpc-message")


class DirectWire(EnvoysCall):
    """One gRPC call in the client's own exchange."""

    def __init__(self) -> None:
        self._http_status: int | None = None
        self._trailers: list[str] | None = None
        self._ended = False

    def call(self, call: CallUpstream, request_headers: Mapping[str, str], recipient: Recipient) -> Iterator[bytes]:
        """Turn the request into the call, and end it: one message is the whole call."""
        head = {
            ":path": call.path,
            ":method": "POST",
            "content-type": call.content_type,
            "te": "trailers",
            **call.headers,
        }
        # Client headers would become gRPC metadata and steer Triton (grpc-timeout, triton_grpc_error): none pass.
        foreign = [name for name in request_headers if not name.startswith(":") and name not in head]
        yield messages.request_headers(head, foreign).SerializeToString()
        for message in messages.request_body(call.body, end=True):
            yield message.SerializeToString()

    def receive(self, message: bytes) -> tuple[bytes, WireEnd | None]:
        """The call's bytes, of which a message's body consists, and its end."""
        if self._ended:
            return b"", None
        body = by_hand.body_of(message)
        return self._receive(ProcessingRequest.FromString(message)) if body is None else (body, None)

    def _receive(self, message: ProcessingRequest) -> tuple[bytes, WireEnd | None]:
        kind = message.WhichOneof("request")
        if kind == "response_body":
            body = message.response_body
            # gRPC ends with trailers; a body that ends the stream has left them out.
            return body.body, self._end(False, {}) if body.end_of_stream else None
        if kind == "response_headers":
            return b"", self._read_head(messages.headers_of(message.response_headers.headers))
        if kind == "response_trailers":
            trailers = messages.headers_of(message.response_trailers.trailers)
            self._trailers = list(trailers)
            return b"", self._end(True, trailers)
        return b"", None

    def head(self, headers: Mapping[str, str]) -> bytes:
        """The response head for the client, without gRPC's headers."""
        return bytes(messages.response_headers(headers, _GRPC_HEADERS).SerializeToString())

    def finish(self, data: bytes) -> Iterator[bytes]:
        """End the client's response. Where trailers came, their answer ends it, not the body."""
        if self._trailers is None:
            yield messages.response_body(data, end=True).SerializeToString()
            return
        yield messages.response_body(data, end=False).SerializeToString()
        yield messages.response_trailers(self._trailers).SerializeToString()

    def _read_head(self, headers: dict[str, str]) -> WireEnd | None:
        status = headers.get(":status", "")
        self._http_status = int(status) if status.isdecimal() else None
        answered = self._http_status == HTTPStatus.OK and headers.get("content-type", "").startswith("application/grpc")
        if answered and "grpc-status" not in headers:
            return None
        # A trailers-only answer, or Envoy's own.
        return self._end(answered, headers)

    def _end(self, whole: bool, headers: dict[str, str]) -> WireEnd:
        self._ended = True
        return WireEnd(whole, self._http_status, status_of(headers))
