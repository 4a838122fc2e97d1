"""What every contract offers: a request from a generation, and pieces from responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from tritonclient.grpc import model_config_pb2, service_pb2

FinishReason = Literal["stop", "length"]


class Piece(NamedTuple):
    """What one response adds to the answer: its text (whole characters only) and how many tokens it took."""

    text: str
    tokens: int


class Detokenizer(Protocol):
    """Ids back to text, whole characters only."""

    def feed(self, ids: Sequence[int]) -> str:
        """The text that ``ids`` complete."""

    def end(self) -> str:
        """The text still held back."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation, in terms that every contract knows.

    ``max_tokens`` is at least 1 and fits the context. ``temperature`` is 0–2, ``top_p`` in (0, 1]. ``seed`` is an
    unsigned 64-bit integer: TensorRT-LLM's own default is the same for every request. ``end_ids`` are the tokenizer's
    end-of-turn ids, the first of them the chief one.
    """

    request_id: str
    prompt_ids: Sequence[int]
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    end_ids: tuple[int, ...]


class Decoder(Protocol):
    """The responses of one generation, read in order."""

    finish_reason: FinishReason | None
    cached_tokens: int

    def feed(self, response: service_pb2.ModelInferResponse) -> Piece:
        """What ``response`` adds; sets ``finish_reason`` once it is known."""

    def end(self) -> str:
        """The text held back until the end; sets ``finish_reason`` when the stream never told it."""


class Contract(Protocol):
    """One way in which Triton serves a language model."""

    @property
    def name(self) -> str:
        """The contract's name in logs and checks."""

    def request(self, model: str, generation: Generation) -> bytes:
        """The serialized ``ModelInferRequest``."""

    def decoder(self, generation: Generation, detokenizer: Detokenizer) -> Decoder:
        """A reader for the generation's responses."""


class Recogniser(Protocol):
    """Tells from a model's tensors whether it speaks a contract."""

    def __call__(
        self, metadata: service_pb2.ModelMetadataResponse, config: model_config_pb2.ModelConfig
    ) -> Contract | None:
        """The contract with its flags set, or ``None``."""
