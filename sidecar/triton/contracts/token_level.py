"""The token-level contract: TensorRT-LLM's ``tensorrt_llm`` model, ids in and ids out.

Source: TensorRT-LLM ``triton_backend/all_models/inflight_batcher_llm/tensorrt_llm/config.pbtxt``. Each streamed
response carries the ids generated since the last one; an answer that ended by itself ends with the end id. Usage and
finish reason are therefore exact.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tritonclient.grpc import model_config_pb2, service_pb2

from sidecar.triton.contracts.contract import Detokenizer, FinishReason, Generation, Piece

_REQUIRED_INPUTS = {"input_ids", "request_output_len"}
_OUTPUT_IDS = "output_ids"
_REUSED_BLOCKS = "kv_cache_reused_blocks"


def recognise(metadata: service_pb2.ModelMetadataResponse, config: model_config_pb2.ModelConfig) -> TokenLevel | None:
    """The contract of a decoupled model with token-level tensors, else ``None``."""
    inputs = {tensor.name for tensor in metadata.inputs}
    outputs = {tensor.name for tensor in metadata.outputs}
    if not (inputs >= _REQUIRED_INPUTS and _OUTPUT_IDS in outputs):
        return None
    block = config.parameters["tokens_per_block"].string_value if "tokens_per_block" in config.parameters else ""
    return TokenLevel(
        optional_inputs=frozenset(inputs),
        batched=config.max_batch_size > 0,
        tokens_per_block=int(block) if block.isdecimal() else 0,
    )


@dataclass(frozen=True, slots=True)
class TokenLevel:
    """A model's flavour of the contract.

    ``optional_inputs`` are the inputs it has; others are left out. ``batched`` models take a leading batch dimension.
    ``tokens_per_block`` is the size of a KV cache block, 0 when the model's configuration does not tell it; then
    cached tokens are not counted.
    """

    optional_inputs: frozenset[str]
    batched: bool
    tokens_per_block: int
    name: str = "token_level"

    def request(self, model: str, generation: Generation) -> bytes:
        """The serialized ``ModelInferRequest``; optional inputs are sent only where the model has them."""
        message = service_pb2.ModelInferRequest(model_name=model, id=generation.request_id)
        # Without it a decoupled model's last response cannot be told from a stream that broke.
        message.parameters["triton_enable_empty_final_response"].bool_param = True
        ids = generation.prompt_ids
        self._add(message, "input_ids", "INT32", struct.pack(f"<{len(ids)}i", *ids), len(ids))
        self._add(message, "input_lengths", "INT32", struct.pack("<i", len(ids)))
        self._add(message, "request_output_len", "INT32", struct.pack("<i", generation.max_tokens))
        self._add(message, "streaming", "BOOL", b"\x01")
        self._add(message, "exclude_input_in_output", "BOOL", b"\x01")
        self._add(message, "seed", "UINT64", struct.pack("<Q", generation.seed))
        self._add_sampling(message, generation)
        self._add_end_ids(message, generation.end_ids)
        if self.tokens_per_block:
            self._add(message, "return_perf_metrics", "BOOL", b"\x01")
        return message.SerializeToString()  # type: ignore[no-any-return]

    def decoder(self, generation: Generation, detokenizer: Detokenizer) -> TokenLevelDecoder:
        """A reader for the generation's responses."""
        return TokenLevelDecoder(generation, detokenizer, self.tokens_per_block)

    def _add_sampling(self, message: service_pb2.ModelInferRequest, generation: Generation) -> None:
        # The runtime samples greedily unless told otherwise, so OpenAI's defaults must be sent too.
        if generation.temperature == 0:
            self._add(message, "runtime_top_k", "INT32", struct.pack("<i", 1))
            return
        self._add(message, "temperature", "FP32", struct.pack("<f", generation.temperature))
        self._add(message, "runtime_top_p", "FP32", struct.pack("<f", generation.top_p))

    def _add_end_ids(self, message: service_pb2.ModelInferRequest, end_ids: tuple[int, ...]) -> None:
        if not end_ids:
            return
        self._add(message, "end_id", "INT32", struct.pack("<i", end_ids[0]))
        self._add(message, "pad_id", "INT32", struct.pack("<i", end_ids[0]))
        others = end_ids[1:]
        if others:
            # stop_words_list is two rows: the words' ids one after another, and where each word ends.
            rows = [*others, *range(1, len(others) + 1)]
            self._add(message, "stop_words_list", "INT32", struct.pack(f"<{len(rows)}i", *rows), 2, len(others))

    def _add(self, message: service_pb2.ModelInferRequest, name: str, datatype: str, raw: bytes, *dims: int) -> None:
        if name not in self.optional_inputs:
            return
        shape = dims or (1,)
        message.inputs.add(name=name, datatype=datatype, shape=(1, *shape) if self.batched else shape)
        message.raw_input_contents.append(raw)


class TokenLevelDecoder:
    """Reads ids, stops at an end id, counts exactly."""

    def __init__(self, generation: Generation, detokenizer: Detokenizer, tokens_per_block: int) -> None:
        self.finish_reason: FinishReason | None = None
        self.cached_tokens = 0
        self._end_ids = frozenset(generation.end_ids)
        self._prompt_tokens = len(generation.prompt_ids)
        self._left = generation.max_tokens
        self._detokenizer = detokenizer
        self._tokens_per_block = tokens_per_block

    def feed(self, response: service_pb2.ModelInferResponse) -> Piece:
        """The text and count of the response's ids; an end id counts as a token and has no text."""
        ids: Sequence[int] = ()
        for tensor, raw in zip(response.outputs, response.raw_output_contents, strict=False):
            if tensor.name == _OUTPUT_IDS:
                ids = memoryview(raw).cast("i")
            elif tensor.name == _REUSED_BLOCKS and self._tokens_per_block and raw:
                self._count_cached(memoryview(raw).cast("i")[0])
        if not ids or self.finish_reason:
            return Piece("", 0)
        return self._take(ids)

    def end(self) -> str:
        """The text held back; a stream that ended by itself before its limit has stopped."""
        if self.finish_reason is None:
            self.finish_reason = "length" if self._left <= 0 else "stop"
        return self._detokenizer.end()

    def _take(self, ids: Sequence[int]) -> Piece:
        for position, token in enumerate(ids):
            if token in self._end_ids:
                self.finish_reason = "stop"
                return Piece(self._detokenizer.feed(ids[:position]), position + 1)
        self._left -= len(ids)
        return Piece(self._detokenizer.feed(ids), len(ids))

    def _count_cached(self, blocks: int) -> None:
        # A block may reach past the prompt, and a request is never served from more than its prompt.
        self.cached_tokens = max(0, min(blocks * self._tokens_per_block, self._prompt_tokens))
