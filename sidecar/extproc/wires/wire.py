"""What a wire does: it carries the call that an exchange asks for through Envoy, and reads what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from sidecar.backends.triton.frames import GrpcStatus
from sidecar.exchange.commands import CallUpstream


class WireEnd(NamedTuple):
    """How the upstream's answer ended; see ``UpstreamEnd``."""

    whole: bool
    http_status: int | None
    grpc: GrpcStatus | None


class Wire(Protocol):
    """One exchange's way to its upstream and back. Holds the state of its framing, does no I/O."""

    def call(self, call: CallUpstream, request_headers: Mapping[str, str]) -> Iterable[ProcessingResponse]:
        """The messages that make the call, in place of the client's request, which had ``request_headers``."""

    def receive(self, message: ProcessingRequest) -> tuple[bytes, WireEnd | None]:
        """The bytes of the upstream's answer in a message of Envoy's, and the answer's end, where it tells that."""

    def read(self, body: bytes) -> tuple[bytes, WireEnd | None]:
        """The same for a message that is a piece of the response's body, and not the last one, as most are."""

    def head(self, headers: Mapping[str, str]) -> ProcessingResponse:
        """The response head for the client."""

    def finish(self, data: bytes) -> Iterable[ProcessingResponse]:
        """The last bytes of the response body and its end."""
