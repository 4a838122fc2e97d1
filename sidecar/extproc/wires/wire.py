"""What a wire does: it turns an exchange's actions into ext_proc messages and Envoy's messages into its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from sidecar.exchange.actions import CallUpstream
from sidecar.exchange.events import UpstreamBytes, UpstreamEnd

MODEL_STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer"


class Wire(Protocol):
    """One exchange's way to Triton and back. Holds the state of its framing, does no I/O."""

    def __init__(self, request_headers: Mapping[str, str]) -> None: ...

    def call(self, action: CallUpstream) -> Iterable[ProcessingResponse]:
        """The messages that make the upstream call."""

    def receive(self, message: ProcessingRequest, at: float) -> list[UpstreamBytes | UpstreamEnd]:
        """What a message of the response phase tells; ``at`` is its time on the monotonic clock."""

    def head(self, headers: Mapping[str, str]) -> ProcessingResponse:
        """The response head for the client."""

    def finish(self, data: bytes) -> Iterable[ProcessingResponse]:
        """The last bytes of the response body and its end."""
