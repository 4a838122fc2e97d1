"""The token-level contract: TensorRT-LLM's ``tensorrt_llm`` model, ids in and ids out.

Names, types and dims follow ``inflight_batcher_llm/tensorrt_llm/config.pbtxt`` of TensorRT-LLM's Triton backend.
Types that its template leaves open are FP16 for features and embeddings and FP32 for logits. Dims are without the
batch dimension, which every tensor has because ``max_batch_size`` is above 0.
"""

from collections.abc import Mapping
from typing import Any

from .contract import METRICS, Delta, Writer, beside_the_answer
from .inputs import Inputs, Values
from .tensors import BOOL, BYTES, FP16, FP32, INT32, INT64, UINT8, UINT64, Tensor, required
from .vocabulary import Vocabulary

INPUTS = (
    required("input_lengths", INT32),
    required("request_output_len", INT32),
    Tensor("input_ids", INT32, (-1,)),
    Tensor("encoder_input_features", FP16, (-1, -1)),
    Tensor("encoder_output_lengths", INT32),
    Tensor("num_return_sequences", INT32),
    Tensor("draft_input_ids", INT32, (-1,)),
    Tensor("decoder_input_ids", INT32, (-1,)),
    Tensor("decoder_input_lengths", INT32),
    Tensor("draft_logits", FP32, (-1, -1)),
    Tensor("draft_acceptance_threshold", FP32),
    Tensor("end_id", INT32),
    Tensor("pad_id", INT32),
    Tensor("stop_words_list", INT32, (2, -1)),
    Tensor("bad_words_list", INT32, (2, -1)),
    Tensor("embedding_bias", FP32, (-1,)),
    Tensor("beam_width", INT32),
    Tensor("temperature", FP32),
    Tensor("runtime_top_k", INT32),
    Tensor("runtime_top_p", FP32),
    Tensor("runtime_top_p_min", FP32),
    Tensor("runtime_top_p_decay", FP32),
    Tensor("runtime_top_p_reset_ids", INT32),
    Tensor("len_penalty", FP32),
    Tensor("early_stopping", BOOL),
    Tensor("repetition_penalty", FP32),
    Tensor("min_tokens", INT32),
    Tensor("beam_search_diversity_rate", FP32),
    Tensor("presence_penalty", FP32),
    Tensor("frequency_penalty", FP32),
    Tensor("seed", UINT64),
    Tensor("return_log_probs", BOOL),
    Tensor("return_context_logits", BOOL),
    Tensor("return_generation_logits", BOOL),
    Tensor("return_perf_metrics", BOOL),
    Tensor("return_num_input_tokens", BOOL),
    Tensor("return_num_output_tokens", BOOL),
    Tensor("exclude_input_in_output", BOOL),
    Tensor("stop", BOOL),
    Tensor("streaming", BOOL),
    Tensor("prompt_embedding_table", FP16, (-1, -1)),
    Tensor("prompt_table_extra_ids", UINT64, (-1,)),
    Tensor("prompt_vocab_size", INT32),
    Tensor("cross_attention_mask", BOOL, (-1, -1)),
    Tensor("mrope_rotary_cos_sin", FP32, (-1,)),
    Tensor("mrope_position_deltas", INT64),
    Tensor("lora_task_id", UINT64),
    Tensor("lora_weights", FP16, (-1, -1)),
    Tensor("lora_config", INT32, (-1, 3)),
    Tensor("context_phase_params", UINT8, (-1,)),
    Tensor("skip_cross_attn_blocks", BOOL),
    Tensor("retention_token_range_starts", INT32, (-1,)),
    Tensor("retention_token_range_ends", INT32, (-1,)),
    Tensor("retention_token_range_priorities", INT32, (-1,)),
    Tensor("retention_token_range_durations_ms", INT32, (-1,)),
    Tensor("retention_decode_priority", INT32),
    Tensor("retention_decode_duration_ms", INT32),
    Tensor("guided_decoding_guide_type", BYTES),
    Tensor("guided_decoding_guide", BYTES),
    Tensor("lookahead_window_size", INT32),
    Tensor("lookahead_ngram_size", INT32),
    Tensor("lookahead_verification_set_size", INT32),
)

OUTPUTS = (
    Tensor("output_ids", INT32, (-1, -1)),
    Tensor("sequence_length", INT32, (-1,)),
    Tensor("cum_log_probs", FP32, (-1,)),
    Tensor("output_log_probs", FP32, (-1, -1)),
    Tensor("context_logits", FP32, (-1, -1)),
    Tensor("generation_logits", FP32, (-1, -1, -1)),
    Tensor("batch_index", INT32),
    Tensor("sequence_index", INT32),
    Tensor("context_phase_params", UINT8, (-1,)),
    *METRICS,
)


class TokenLevel:
    """Requests and responses are what the models work with."""

    inputs = INPUTS
    outputs = OUTPUTS
    finish_with_data = False

    def __init__(self, vocabulary: Vocabulary, parameters: Mapping[str, str]) -> None:
        pass

    def read(self, values: Values) -> Values:
        """The values as they are."""
        return values

    def writer(self, inputs: Inputs) -> Writer:
        """What writes the responses to one request."""
        return TokenLevelWriter(inputs)


class TokenLevelWriter:
    """New ids and what was asked for beside them."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def outputs(self, delta: Delta) -> dict[str, Any]:
        """Tensors with a batch dimension; metrics have the names that the models give them."""
        ids = {"output_ids": [[delta.ids]], "sequence_length": [[len(delta.ids)]]}
        return ids | beside_the_answer(self._inputs, delta)
