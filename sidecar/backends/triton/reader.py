"""Triton's stream as an exchange reads it: bytes → frames → pieces, and whether it ended as it should.

A response that repeats an earlier one is not parsed (:mod:`sidecar.backends.triton.repeats`). That gives the same
piece as long as the decoder stands where it stood then, but for the text; where a response moves it, all are forgotten.

A generation is complete only when three things agree: the transport's framing ended, the gRPC status is OK, and the
final response was marked (``triton_final_response``). Anything less is a failure, never a short answer.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from sidecar.backends.backend import FinishReason, Piece, Take
from sidecar.backends.triton import errors
from sidecar.backends.triton.contracts.contract import Decoder
from sidecar.backends.triton.frames import (
    TRAILERS_FLAG,
    Frame,
    FrameError,
    FrameReader,
    GrpcStatus,
    parse_trailers,
    payload_of,
)
from sidecar.backends.triton.protocol import service_pb2
from sidecar.backends.triton.repeats import Repeat, repeat_of

_FINAL = "triton_final_response"
_MOST_LEARNT = 64
"""Responses that one stream learns to repeat: more than there are lengths of an ordinary token's text."""


class TritonReader:
    """Reads one ``ModelStreamInfer`` answer."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._frames = FrameReader()
        self._final = False
        self._status: GrpcStatus | None = None
        # By the length of their frames.
        self._repeats: dict[int, Repeat] = {}
        self._learnt = 0
        self._standing = self._decoder_stands()

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
        # Nearly every read is one such frame.
        piece = None if self._frames.rest else self._repeated(data)
        if piece is not None:
            take(*piece)
            return
        try:
            for frame in self._frames.feed(data):
                piece = self._repeated(frame) or self._read(frame)
                if piece is not None and not take(*piece):
                    return
        except (FrameError, DecodeError) as error:
            raise errors.classify_end(None, None) from error

    def end(self, whole: bool, http_status: int | None, grpc: GrpcStatus | None) -> Piece:
        """What was held back until the end of a complete generation.

        Raises:
            ApiError: the generation is not complete.
        """
        status = self._status or grpc
        complete = whole and self._final and not self._frames.rest
        if not (complete and status is not None and status.code == 0):
            raise errors.classify_end(http_status, status)
        return self._decoder.end()

    def stop(self) -> Piece:
        """What was held back, where the answer ends although the model goes on."""
        return self._decoder.end()

    def _repeated(self, frame: Frame) -> Piece | None:
        """The piece in a frame that repeats an earlier one; any other bytes may be given."""
        repeat = self._repeats.get(len(frame))
        if repeat is None:
            return None
        unpack, head, end, rest, take = repeat
        fields = unpack(frame)
        return take(fields[1:end]) if fields[0] == head and fields[end:] == rest else None

    def _read(self, frame: Frame) -> Piece | None:
        """The piece in any frame; trailers have none."""
        if frame[0] & TRAILERS_FLAG:
            self._status = parse_trailers(payload_of(frame))
            return None
        message = service_pb2.ModelStreamInferResponse.FromString(payload_of(frame))
        if message.error_message:
            raise errors.classify_message(message.error_message)
        response = message.infer_response
        final = response.parameters[_FINAL].bool_param
        self._final = self._final or final
        piece = self._decoder.feed(response)
        self._learn(frame, response, final)
        return piece

    def _learn(self, frame: Frame, response: service_pb2.ModelInferResponse, final: bool) -> None:
        """Read what repeats this response without parsing it, from now on, unless it is the ``final`` one."""
        standing = self._decoder_stands()
        if standing != self._standing:
            self._standing = standing
            self._repeats.clear()
        if final or self._learnt == _MOST_LEARNT:
            return
        varying = self._decoder.varying(response)
        repeat = repeat_of(frame, response, varying) if varying else None
        if repeat is not None:
            self._learnt += 1
            self._repeats[len(frame)] = repeat

    def _decoder_stands(self) -> tuple[object, ...]:
        """What a response may change beside the text, and what decides what the next one means."""
        decoder = self._decoder
        return decoder.finish_reason, decoder.input_tokens, decoder.cached_tokens, decoder.counted
