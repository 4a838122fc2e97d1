"""The LLM API contract: TensorRT-LLM's ``tensorrt_llm`` model of ``all_models/llmapi``, text in and text out.

Each streamed response carries the whole text so far. Metrics are written as text, as that model does, although they
are declared as numbers.
"""

from collections.abc import Mapping
from typing import Any

from .contract import Delta, Writer
from .inputs import Inputs, Values, prompt, renamed
from .tensors import BOOL, BYTES, FP32, INT32, INT64, UINT64, Tensor, required
from .vocabulary import TextStream, Vocabulary

_DEFAULT_MAX_TOKENS = 32

INPUTS = (
    required("text_input", BYTES, (-1,)),
    Tensor("image_url", BYTES, (-1,)),
    Tensor("streaming", BOOL),
    Tensor("sampling_param_best_of", INT32),
    Tensor("sampling_param_temperature", FP32),
    Tensor("sampling_param_top_k", INT32),
    Tensor("sampling_param_top_p", FP32),
    Tensor("sampling_param_frequency_penalty", FP32),
    Tensor("sampling_param_presence_penalty", FP32),
    Tensor("sampling_param_max_tokens", INT32),
    Tensor("sampling_param_stop", BYTES, (-1,)),
    Tensor("sampling_param_seed", UINT64),
    Tensor("sampling_param_exclude_input_from_output", BOOL),
    Tensor("sampling_param_return_perf_metrics", BOOL),
    Tensor("return_finish_reason", BOOL),
    Tensor("return_stop_reason", BOOL),
    Tensor("return_cumulative_logprob", BOOL),
    Tensor("stop", BOOL),
    Tensor("lora_id", UINT64),
    Tensor("lora_name", BYTES),
    Tensor("lora_path", BYTES),
    Tensor("lora_ckpt_source", BYTES),
)

OUTPUTS = (
    Tensor("text_output", BYTES, (-1,)),
    Tensor("finish_reason", BYTES, (-1,)),
    Tensor("stop_reason", BYTES, (-1,)),
    Tensor("cumulative_logprob", FP32, (-1,)),
    Tensor("kv_cache_reused_block", INT32, (-1,)),
    Tensor("kv_cache_missed_block", INT32, (-1,)),
    Tensor("kv_cache_alloc_new_blocks", INT32, (-1,)),
    Tensor("kv_cache_alloc_total_blocks", INT32, (-1,)),
    Tensor("kv_cache_hit_rate", FP32, (-1,)),
    Tensor("arrival_time_ns", INT64),
    Tensor("first_scheduled_time_ns", INT64),
    Tensor("first_token_time_ns", INT64),
    Tensor("last_token_time_ns", INT64),
    Tensor("acceptance_rate", FP32),
    Tensor("total_accepted_draft_tokens", INT32),
    Tensor("total_draft_tokens", INT32),
)

_SAMPLING = {
    "sampling_param_temperature": "temperature",
    "sampling_param_top_k": "runtime_top_k",
    "sampling_param_top_p": "runtime_top_p",
    "sampling_param_frequency_penalty": "frequency_penalty",
    "sampling_param_presence_penalty": "presence_penalty",
    "sampling_param_max_tokens": "request_output_len",
    "sampling_param_seed": "seed",
    "sampling_param_exclude_input_from_output": "exclude_input_in_output",
    "sampling_param_return_perf_metrics": "return_perf_metrics",
    "sampling_param_best_of": "num_return_sequences",
    "streaming": "streaming",
    "return_finish_reason": "return_finish_reason",
    "lora_id": "lora_task_id",
}
# Metrics that have another name here.
_METRICS = {"kv_cache_reused_blocks": "kv_cache_reused_block"}


class LlmApi:
    """Tokenizes requests, detokenizes responses, tells the reason of the end."""

    inputs = INPUTS
    outputs = OUTPUTS
    finish_with_data = True

    def __init__(self, vocabulary: Vocabulary, parameters: Mapping[str, str]) -> None:
        self._vocabulary = vocabulary

    def read(self, values: Values) -> Values:
        """A request as token-level inputs, with the defaults of the LLM API."""
        return {
            "request_output_len": [_DEFAULT_MAX_TOKENS],
            "end_id": [self._vocabulary.end_id],
            **prompt(self._vocabulary.encode_prompt(values["text_input"][0].decode())),
            **renamed(values, _SAMPLING),
        }

    def writer(self, inputs: Inputs) -> Writer:
        """What writes the responses to one request."""
        return LlmApiWriter(inputs, TextStream(self._vocabulary))


class LlmApiWriter:
    """The whole text so far, every time."""

    def __init__(self, inputs: Inputs, stream: TextStream) -> None:
        self._inputs = inputs
        self._stream = stream
        self._text = ""

    def outputs(self, delta: Delta) -> dict[str, Any]:
        """Tensors without a batch dimension."""
        self._text += self._stream.feed(delta.ids, ended=delta.finish is not None)
        metrics = {_METRICS.get(name, name): [str(value).encode()] for name, value in delta.metrics.items()}
        outputs = {"text_output": [self._text.encode()], **metrics}
        if self._inputs.scalar("return_finish_reason", False):
            # The model writes None as text while the answer goes on.
            outputs["finish_reason"] = [str(delta.finish).encode()]
        return outputs
