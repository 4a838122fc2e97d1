"""What every contract offers: a request from a generation, and pieces from responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from sidecar.backends.backend import FinishReason, Piece
from sidecar.backends.triton.protocol import model_config_pb2, service_pb2
from sidecar.backends.triton.repeats import Varying
from sidecar.images.image import Image

UNBOUNDED = 2**31 - 1
"""A ``max_images`` that leaves the number to other limits."""

CallGuideForm = Literal["structural_tag", "ebnf_grammar"]
"""How a runtime takes a guide of the calls in an answer that is otherwise free."""


class Detokenizer(Protocol):
    """Ids back to text, whole characters only."""

    def feed(self, ids: Sequence[int]) -> str:
        """The text that ``ids`` complete."""

    def end(self) -> str:
        """The text still held back."""


class Vocabulary(Protocol):
    """The model's tokenizer, as decoders need it."""

    def detokenizer(self) -> Detokenizer:
        """A fresh detokenizer for one answer."""

    def count(self, text: str) -> int:
        """How many tokens ``text`` is; linear in its length."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation, in terms that every contract knows.

    ``prompt_text`` is the prompt for a runtime that encodes it itself. ``max_tokens`` is at least 1 and fits the
    context. ``temperature`` is 0–2, ``top_p`` in (0, 1]. ``seed`` is an unsigned 64-bit integer: TensorRT-LLM's own
    default is the same for every request. ``end_ids`` are the tokenizer's end-of-turn ids, the first of them the chief
    one. ``stop`` are texts that end the answer; whoever reads the answer looks for them too. Only a contract that
    ``guides`` may be given a ``guide``: the JSON Schema that the answer must fit, as a document; or, in the contract's
    ``call_guide_form``, a ``call_guide`` of the calls in it. ``images`` are in the order of their places in the prompt,
    and no more than the contract's ``max_images``.
    """

    request_id: str
    prompt_ids: Sequence[int]
    prompt_text: str
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    end_ids: tuple[int, ...]
    stop: tuple[str, ...] = ()
    guide: str | None = None
    call_guide: str | None = None
    images: Sequence[Image] = ()


class Decoder(Protocol):
    """The responses of one generation, read in order.

    ``input_tokens`` is ``None`` unless the runtime told it. ``counted`` says that the runtime did not tell the output
    tokens, so that they are counted with our tokenizer. ``broken_characters`` counts U+FFFD in the text.
    """

    finish_reason: FinishReason | None
    input_tokens: int | None
    cached_tokens: int
    counted: bool
    broken_characters: int

    def feed(self, response: service_pb2.ModelInferResponse) -> Piece:
        """What ``response`` adds; sets ``finish_reason`` once it is known.

        Raises:
            ApiError: the runtime gave the generation up.
        """

    def varying(self, response: service_pb2.ModelInferResponse) -> Varying | None:
        """What may vary in a response like this one, which is the last that has been read, without being parsed.

        ``None`` where any difference may mean something. The piece is the one that :meth:`feed` would make, as long as
        ``finish_reason``, ``input_tokens``, ``cached_tokens`` and ``counted`` are as they are now.
        """

    def end(self) -> Piece:
        """The text held back until the end; its tokens correct what was told before, and may be negative.

        Sets ``finish_reason`` when the stream never told it. May also be called where an answer ends early.
        """


class Contract(Protocol):
    """One way in which Triton serves a language model."""

    @property
    def name(self) -> str:
        """The contract's name in logs and checks."""

    @property
    def speaks_text(self) -> bool:
        """Whether the runtime encodes and decodes itself; then an end token may show up in the text."""

    @property
    def guides(self) -> bool:
        """Whether the model has guided decoding."""

    @property
    def call_guide_form(self) -> CallGuideForm | None:
        """The guide of calls in free text that the model takes, if any."""

    @property
    def max_images(self) -> int:
        """How many images one request may hold; 0 where the model has no input for them."""

    @property
    def remedy(self) -> str:
        """What the operator can do about broken characters; empty where only the model itself can write them."""

    def request(self, model: str, generation: Generation) -> bytes:
        """The serialized ``ModelInferRequest``; optional inputs are sent only where the model has them."""

    def decoder(self, generation: Generation, vocabulary: Vocabulary) -> Decoder:
        """A reader for the generation's responses."""


class Recogniser(Protocol):
    """Tells from a model's tensors whether it speaks a contract."""

    def __call__(
        self, metadata: service_pb2.ModelMetadataResponse, config: model_config_pb2.ModelConfig
    ) -> Contract | None:
        """The contract with its flags set, or ``None``."""
