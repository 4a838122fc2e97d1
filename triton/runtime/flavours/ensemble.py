"""The ensemble contract: TensorRT-LLM's ``ensemble`` and ``tensorrt_llm_bls``, text in and text out.

Tensors follow ``inflight_batcher_llm/tensorrt_llm_bls/config.pbtxt``. As NVIDIA's postprocessing does, each response
is detokenized alone, so a character that spans responses is broken into U+FFFD; with the parameter
``accumulate_tokens`` each response carries the whole text so far instead.
"""

from collections.abc import Mapping
from typing import Any

from .contract import METRICS, Delta, Writer, beside_the_answer
from .inputs import Inputs, Rejected, Values, prompt, renamed, word_rows
from .tensors import BOOL, BYTES, FP16, FP32, INT32, UINT8, UINT64, Tensor, required
from .vocabulary import Vocabulary

INPUTS = (
    required("text_input", BYTES),
    required("max_tokens", INT32),
    Tensor("decoder_text_input", BYTES),
    Tensor("image_input", FP16, (-1, 3, -1, -1)),
    Tensor("image_bytes_input", UINT8, (-1, -1, -1, -1)),
    Tensor("image_url_input", BYTES),
    Tensor("video_bytes_input", UINT8, (-1, -1, -1, -1)),
    Tensor("bad_words", BYTES, (-1,)),
    Tensor("stop_words", BYTES, (-1,)),
    Tensor("exclude_input_in_output", BOOL),
    Tensor("end_id", INT32),
    Tensor("pad_id", INT32),
    Tensor("top_k", INT32),
    Tensor("top_p", FP32),
    Tensor("temperature", FP32),
    Tensor("length_penalty", FP32),
    Tensor("repetition_penalty", FP32),
    Tensor("min_tokens", INT32),
    Tensor("presence_penalty", FP32),
    Tensor("frequency_penalty", FP32),
    Tensor("seed", UINT64),
    Tensor("return_log_probs", BOOL),
    Tensor("return_context_logits", BOOL),
    Tensor("return_generation_logits", BOOL),
    Tensor("num_return_sequences", INT32),
    Tensor("beam_width", INT32),
    Tensor("stream", BOOL),
    Tensor("prompt_embedding_table", FP16, (-1, -1)),
    Tensor("prompt_vocab_size", INT32),
    Tensor("prompt_table_extra_id", UINT64),
    Tensor("embedding_bias_words", BYTES, (-1,)),
    Tensor("embedding_bias_weights", FP32, (-1,)),
    Tensor("num_draft_tokens", INT32),
    Tensor("use_draft_logits", BOOL),
    Tensor("lora_task_id", UINT64),
    Tensor("lora_weights", FP16, (-1, -1)),
    Tensor("lora_config", INT32, (-1, 3)),
    Tensor("return_perf_metrics", BOOL),
    Tensor("return_num_input_tokens", BOOL),
    Tensor("return_num_output_tokens", BOOL),
    Tensor("guided_decoding_guide_type", BYTES),
    Tensor("guided_decoding_guide", BYTES),
)

OUTPUTS = (
    Tensor("text_output", BYTES, (-1,)),
    Tensor("cum_log_probs", FP32, (-1,)),
    Tensor("output_log_probs", FP32, (-1, -1)),
    Tensor("context_logits", FP32, (-1, -1)),
    Tensor("generation_logits", FP32, (-1, -1, -1)),
    Tensor("batch_index", INT32),
    Tensor("sequence_index", INT32),
    *METRICS,
)

# Inputs that keep their meaning, with the names that the preprocessing hands them on under.
_HANDED_ON = {
    "max_tokens": "request_output_len",
    "stream": "streaming",
    "top_k": "runtime_top_k",
    "top_p": "runtime_top_p",
    "length_penalty": "len_penalty",
} | {
    name: name
    for name in (
        "exclude_input_in_output",
        "end_id",
        "pad_id",
        "temperature",
        "repetition_penalty",
        "min_tokens",
        "presence_penalty",
        "frequency_penalty",
        "seed",
        "return_log_probs",
        "return_context_logits",
        "return_generation_logits",
        "num_return_sequences",
        "beam_width",
        "prompt_embedding_table",
        "lora_task_id",
        "lora_weights",
        "return_perf_metrics",
        "return_num_input_tokens",
        "return_num_output_tokens",
        "guided_decoding_guide_type",
        "guided_decoding_guide",
    )
}
_UNSUPPORTED = ("image_input", "image_bytes_input", "image_url_input", "video_bytes_input", "num_draft_tokens")


class Ensemble:
    """Tokenizes requests and detokenizes responses."""

    inputs = INPUTS
    outputs = OUTPUTS
    finish_with_data = False

    def __init__(self, vocabulary: Vocabulary, parameters: Mapping[str, str]) -> None:
        self._vocabulary = vocabulary
        self._accumulate = parameters.get("accumulate_tokens") == "true"

    def read(self, values: Values) -> Values:
        """What the preprocessing makes of a request."""
        inputs = Inputs(values)
        if unsupported := [name for name in _UNSUPPORTED if name in values]:
            raise Rejected(f"{unsupported[0]} is not supported by this model")
        if inputs.required("max_tokens") < 1:
            raise Rejected("max_tokens must be a single value > 0")
        encode = self._vocabulary.encode
        words = {
            f"{name}_list": word_rows([encode(word.decode()) for word in values[name]])
            for name in ("stop_words", "bad_words")
            if name in values
        }
        prompt_ids = self._vocabulary.encode_prompt(inputs.required("text_input"))
        return {"end_id": [self._vocabulary.end_id], **prompt(prompt_ids), **renamed(values, _HANDED_ON), **words}

    def writer(self, inputs: Inputs) -> Writer:
        """What writes the responses to one request."""
        return EnsembleWriter(inputs, self._vocabulary, self._accumulate)


class EnsembleWriter:
    """The text of the new ids, or of all."""

    def __init__(self, inputs: Inputs, vocabulary: Vocabulary, accumulate: bool) -> None:
        self._inputs = inputs
        self._vocabulary = vocabulary
        self._accumulate = accumulate
        self._ids: list[int] = []

    def outputs(self, delta: Delta) -> dict[str, Any]:
        """Tensors with a batch dimension."""
        self._ids = [*(self._ids if self._accumulate else ()), *delta.ids]
        text = self._vocabulary.decode(self._ids).encode()
        return {"text_output": [[text]], **beside_the_answer(self._inputs, delta)}
