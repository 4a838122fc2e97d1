"""Triton's stream as an exchange reads it: bytes → frames → pieces, and whether it ended as it should.

A generation is complete only when three things agree: the transport's framing ended, the gRPC status is OK, and the
final response was marked (``triton_final_response``). Anything less is a failure, never a short answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError

from sidecar.backends.triton import errors
from sidecar.backends.triton.contracts.contract import Decoder, Piece
from sidecar.backends.triton.frames import TRAILERS_FLAG, FrameError, FrameReader, GrpcStatus, parse_trailers
from sidecar.backends.triton.protocol import service_pb2

_FINAL = "triton_final_response"


class UpstreamReader:
    """Reads one ``ModelStreamInfer`` answer."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._frames = FrameReader()
        self._final = False
        self._status: GrpcStatus | None = None

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that ``data`` completes, one per response.

        Raises:
            ApiError: Triton reported a failure, or the bytes are not its protocol.
        """
        try:
            for frame in self._frames.feed(data):
                if frame.flags & TRAILERS_FLAG:
                    self._status = parse_trailers(frame.payload)
                    continue
                message = service_pb2.ModelStreamInferResponse.FromString(frame.payload)
                if message.error_message:
                    raise errors.classify_message(message.error_message)
                response = message.infer_response
                if response.parameters[_FINAL].bool_param:
                    self._final = True
                yield self._decoder.feed(response)
        except (FrameError, DecodeError) as error:
            raise errors.classify_end(None, None) from error

    def end(self, whole: bool, http_status: int | None, grpc: GrpcStatus | None) -> Piece:
        """What was held back until the end of a complete generation.

        ``whole`` is whether the transport's framing ended as it should; ``http_status`` the status of the head, if one
        came; ``grpc`` the status outside the body, if one was sent.

        Raises:
            ApiError: the generation is not complete.
        """
        status = self._status or grpc
        complete = whole and self._final and not self._frames.partial
        if not (complete and status is not None and status.code == 0):
            raise errors.classify_end(http_status, status)
        return self._decoder.end()
