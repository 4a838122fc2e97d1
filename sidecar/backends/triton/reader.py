"""Triton's stream as an exchange reads it: bytes → frames → pieces, and whether it ended as it should.

A generation is complete only when three things agree: the transport's framing ended, the gRPC status is OK, and the
final response was marked (``triton_final_response``). Anything less is a failure, never a short answer.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from sidecar.backends.backend import FinishReason, Piece, Take
from sidecar.backends.triton import errors
from sidecar.backends.triton.contracts.contract import Decoder
from sidecar.backends.triton.frames import TRAILERS_FLAG, FrameError, FrameReader, GrpcStatus, parse_trailers
from sidecar.backends.triton.protocol import service_pb2

_FINAL = "triton_final_response"


class TritonReader:
    """Reads one ``ModelStreamInfer`` answer."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._frames = FrameReader()
        self._final = False
        self._status: GrpcStatus | None = None

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the generation ended."""
        return self._decoder.finish_reason

    @property
    def input_tokens(self) -> int | None:
        """Tokens of the prompt, where the model told them."""
        return self._decoder.input_tokens

    @property
    def cached_tokens(self) -> int:
        """Those of them that came from the KV cache."""
        return self._decoder.cached_tokens

    @property
    def counted(self) -> bool:
        """Whether output tokens are counted with our tokenizer."""
        return self._decoder.counted

    @property
    def broken_characters(self) -> int:
        """How many U+FFFD the text holds."""
        return self._decoder.broken_characters

    def feed(self, data: bytes, take: Take) -> None:
        """Hand over the pieces that ``data`` completes, one per response, until ``take`` wants no more.

        Raises:
            ApiError: Triton reported a failure, or the bytes are not its protocol.
        """
        try:
            for flags, payload in self._frames.feed(data):
                if flags & TRAILERS_FLAG:
                    self._status = parse_trailers(payload)
                    continue
                message = service_pb2.ModelStreamInferResponse.FromString(payload)
                if message.error_message:
                    raise errors.classify_message(message.error_message)
                response = message.infer_response
                if response.parameters[_FINAL].bool_param:
                    self._final = True
                text, tokens = self._decoder.feed(response)
                if not take(text, tokens):
                    return
        except (FrameError, DecodeError) as error:
            raise errors.classify_end(None, None) from error

    def end(self, whole: bool, http_status: int | None, grpc: GrpcStatus | None) -> Piece:
        """What was held back until the end of a complete generation.

        Raises:
            ApiError: the generation is not complete.
        """
        status = self._status or grpc
        complete = whole and self._final and not self._frames.partial
        if not (complete and status is not None and status.code == 0):
            raise errors.classify_end(http_status, status)
        return self._decoder.end()

    def stop(self) -> Piece:
        """What was held back, where the answer ends although the model goes on."""
        return self._decoder.end()
