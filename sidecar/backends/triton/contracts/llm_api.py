"""The LLM API contract: TensorRT-LLM's ``tensorrt_llm`` model of ``all_models/llmapi``, text in and text out.

Source: TensorRT-LLM ``triton_backend/all_models/llmapi/tensorrt_llm``. Each response carries the whole text so far; the
last tells why the answer ended. No response tells token counts, and there is no guided decoding.
"""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.backends.triton.contracts.contract import CallGuideForm, Generation, Vocabulary
from sidecar.backends.triton.contracts.images import data_url, max_images
from sidecar.backends.triton.contracts.tensors import InferRequest, names, tokens_per_block
from sidecar.backends.triton.contracts.text import TEXT_OUTPUT, TextDecoder
from sidecar.backends.triton.protocol import model_config_pb2, service_pb2

_IMAGES = "image_url"
_SAMPLING = "sampling_param_"


def recognise(metadata: service_pb2.ModelMetadataResponse, config: model_config_pb2.ModelConfig) -> LlmApi | None:
    """The contract of a decoupled model with the LLM API's sampling inputs, else ``None``."""
    inputs, outputs = names(metadata)
    if not (any(name.startswith(_SAMPLING) for name in inputs) and TEXT_OUTPUT in outputs):
        return None
    return LlmApi(
        inputs=inputs,
        batched=config.max_batch_size > 0,
        tokens_per_block=tokens_per_block(config),
        max_images=max_images(metadata, _IMAGES),
    )


@dataclass(frozen=True, slots=True)
class LlmApi:
    """A model's flavour of the contract; members as for ``TokenLevel``."""

    inputs: frozenset[str]
    batched: bool
    tokens_per_block: int
    guides: bool = False
    max_images: int = 0
    name: str = "llm_api"
    speaks_text: bool = True
    remedy: str = ""

    @property
    def call_guide_form(self) -> CallGuideForm | None:
        """The guide of calls in free text that the model takes, if any."""
        return None

    def request(self, model: str, generation: Generation) -> bytes:
        """The serialized ``ModelInferRequest``; optional inputs are sent only where the model has them."""
        request = InferRequest(model, generation, self.inputs, self.batched)
        request.texts("text_input", generation.prompt_text)
        request.flag("streaming", "return_finish_reason", f"{_SAMPLING}exclude_input_from_output")
        request.int32(f"{_SAMPLING}max_tokens", generation.max_tokens)
        request.uint64(f"{_SAMPLING}seed", generation.seed)
        # Decoding is greedy unless told otherwise, so OpenAI's defaults must be sent too.
        if generation.temperature == 0:
            request.int32(f"{_SAMPLING}top_k", 1)
        else:
            request.fp32(f"{_SAMPLING}temperature", generation.temperature)
            request.fp32(f"{_SAMPLING}top_p", generation.top_p)
        request.texts(_IMAGES, *map(data_url, generation.images))
        # No stop strings: the model hands them on as an array of bytes. The reader cuts at them and cancels.
        if self.tokens_per_block:
            request.flag(f"{_SAMPLING}return_perf_metrics")
        return request.serialized()

    def decoder(self, generation: Generation, vocabulary: Vocabulary) -> TextDecoder:
        """A reader for the generation's responses."""
        return TextDecoder(generation, vocabulary, cumulative=True, tokens_per_block=self.tokens_per_block)
