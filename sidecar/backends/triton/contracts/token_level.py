"""The token-level contract: TensorRT-LLM's ``tensorrt_llm`` model, ids in and ids out.

Source: TensorRT-LLM ``triton_backend/all_models/inflight_batcher_llm/tensorrt_llm/config.pbtxt``. Each streamed
response carries the ids generated since the last one; an answer that ended by itself ends with the end id. Usage and
finish reason are therefore exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.backends.backend import FinishReason, Piece
from sidecar.backends.triton.contracts.contract import CallGuideForm, Generation, Vocabulary
from sidecar.backends.triton.contracts.guided_decoding import GUIDE_TYPE, add_guide
from sidecar.backends.triton.contracts.tensors import InferRequest, names, parameter, tokens_per_block
from sidecar.backends.triton.protocol import model_config_pb2, service_pb2
from sidecar.backends.triton.repeats import Varying

_REQUIRED_INPUTS = {"input_ids", "request_output_len"}
_OUTPUT_IDS = "output_ids"
_REUSED_BLOCKS = "kv_cache_reused_blocks"
_GUIDE_BACKEND = "guided_decoding_backend"
_BYTES_OF_AN_ID = 4


def recognise(metadata: service_pb2.ModelMetadataResponse, config: model_config_pb2.ModelConfig) -> TokenLevel | None:
    """The contract of a decoupled model with token-level tensors, else ``None``."""
    inputs, outputs = names(metadata)
    if not (inputs >= _REQUIRED_INPUTS and _OUTPUT_IDS in outputs):
        return None
    # TensorRT-LLM's configuration names a guided decoding backend; without one the guide's inputs do nothing.
    can_guide = _GUIDE_BACKEND not in config.parameters or bool(parameter(config, _GUIDE_BACKEND))
    return TokenLevel(
        inputs=inputs,
        batched=config.max_batch_size > 0,
        tokens_per_block=tokens_per_block(config),
        guides=can_guide and GUIDE_TYPE in inputs,
    )


@dataclass(frozen=True, slots=True)
class TokenLevel:
    """A model's flavour of the contract.

    ``inputs`` are the inputs it has; others are left out. ``batched`` models take a leading batch dimension.
    ``tokens_per_block`` is the size of a KV cache block, 0 when the model's configuration does not tell it; then
    cached tokens are not counted.
    """

    inputs: frozenset[str]
    batched: bool
    tokens_per_block: int
    guides: bool = False
    max_images: int = 0
    name: str = "token_level"
    speaks_text: bool = False
    remedy: str = ""

    @property
    def call_guide_form(self) -> CallGuideForm | None:
        """The guide of calls in free text that the model takes, if any."""
        return "ebnf_grammar" if self.guides else None

    def request(self, model: str, generation: Generation) -> bytes:
        """The serialized ``ModelInferRequest``; optional inputs are sent only where the model has them."""
        request = InferRequest(model, generation, self.inputs, self.batched)
        ids = generation.prompt_ids
        request.int32s("input_ids", ids, len(ids))
        request.int32("input_lengths", len(ids))
        request.int32("request_output_len", generation.max_tokens)
        request.flag("streaming", "exclude_input_in_output")
        request.uint64("seed", generation.seed)
        self._add_sampling(request, generation)
        self._add_end_ids(request, generation.end_ids)
        add_guide(request, generation)
        if self.tokens_per_block:
            request.flag("return_perf_metrics")
        return request.serialized()

    def decoder(self, generation: Generation, vocabulary: Vocabulary) -> TokenLevelDecoder:
        """A reader for the generation's responses."""
        return TokenLevelDecoder(generation, vocabulary, self.tokens_per_block)

    @staticmethod
    def _add_sampling(request: InferRequest, generation: Generation) -> None:
        # The runtime samples greedily unless told otherwise, so OpenAI's defaults must be sent too.
        if generation.temperature == 0:
            request.int32("runtime_top_k", 1)
            return
        request.fp32("temperature", generation.temperature)
        request.fp32("runtime_top_p", generation.top_p)

    @staticmethod
    def _add_end_ids(request: InferRequest, end_ids: tuple[int, ...]) -> None:
        if not end_ids:
            return
        request.int32("end_id", end_ids[0])
        request.int32("pad_id", end_ids[0])
        others = end_ids[1:]
        if others:
            # stop_words_list is two rows: the words' ids one after another, and where each word ends.
            request.int32s("stop_words_list", [*others, *range(1, len(others) + 1)], 2, len(others))


class TokenLevelDecoder:
    """Reads ids, stops at an end id, counts exactly."""

    def __init__(self, generation: Generation, vocabulary: Vocabulary, tokens_per_block: int) -> None:
        self.finish_reason: FinishReason | None = None
        self.input_tokens: int | None = None
        self.cached_tokens = 0
        self.counted = False
        self.broken_characters = 0
        self._end_ids = frozenset(generation.end_ids)
        self._prompt_tokens = len(generation.prompt_ids)
        self._left = generation.max_tokens
        self._detokenizer = vocabulary.detokenizer()
        self._tokens_per_block = tokens_per_block

    def feed(self, response: service_pb2.ModelInferResponse) -> Piece:
        """The text and count of the response's ids; an end id counts as a token and has no text."""
        ids: Sequence[int] = ()
        for tensor, raw in zip(response.outputs, response.raw_output_contents, strict=False):
            if tensor.name == _OUTPUT_IDS:
                ids = memoryview(raw).cast("i")
            elif tensor.name == _REUSED_BLOCKS and self._tokens_per_block and raw:
                self._count_cached(memoryview(raw).cast("i")[0])
        return self._take(ids)

    def varying(self, response: service_pb2.ModelInferResponse) -> Varying | None:
        """The ids. Of the other outputs that come with each response nothing is read."""
        names = [tensor.name for tensor in response.outputs]
        if names.count(_OUTPUT_IDS) != 1 or len(response.raw_output_contents) != len(names):
            return None
        place = names.index(_OUTPUT_IDS)
        count = len(response.raw_output_contents[place]) // _BYTES_OF_AN_ID
        ignored = [at for at, name in enumerate(names) if name not in (_OUTPUT_IDS, _REUSED_BLOCKS)]
        return Varying(place, f"{count}i", ignored, self._take) if count else None

    def end(self) -> Piece:
        """The text held back; a stream that ended by itself before its limit has stopped."""
        if self.finish_reason is None:
            self.finish_reason = "length" if self._left <= 0 else "stop"
        return (self._detokenizer.end(), 0)

    def _take(self, ids: Sequence[int]) -> Piece:
        if not ids or self.finish_reason:
            return ("", 0)
        if not self._end_ids.isdisjoint(ids):
            position = next(position for position, token in enumerate(ids) if token in self._end_ids)
            self.finish_reason = "stop"
            return (self._detokenizer.feed(ids[:position]), position + 1)
        self._left -= len(ids)
        return (self._detokenizer.feed(ids), len(ids))

    def _count_cached(self, blocks: int) -> None:
        # A block may reach past the prompt, and a request is never served from more than its prompt.
        self.cached_tokens = max(0, min(blocks * self._tokens_per_block, self._prompt_tokens))
