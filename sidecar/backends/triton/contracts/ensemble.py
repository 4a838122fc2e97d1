"""The ensemble contract: TensorRT-LLM's ``ensemble`` and ``tensorrt_llm_bls`` models, text in and text out.

Source: TensorRT-LLM ``triton_backend/all_models/inflight_batcher_llm`` (``ensemble``, ``tensorrt_llm_bls``,
``preprocessing``, ``postprocessing``). No response tells why the answer ended. Each is detokenized alone, so that a
character that spans responses is broken, unless the BLS model has ``accumulate_tokens``: then each response carries
the whole text so far.
"""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.backends.triton.contracts.contract import CallGuideForm, Generation, Vocabulary
from sidecar.backends.triton.contracts.guided_decoding import GUIDE_TYPE, add_guide
from sidecar.backends.triton.contracts.images import jpeg_data_url, max_images
from sidecar.backends.triton.contracts.tensors import InferRequest, names, parameter, tokens_per_block
from sidecar.backends.triton.contracts.text import TEXT_OUTPUT, TextDecoder
from sidecar.backends.triton.protocol import model_config_pb2, service_pb2

_REQUIRED_INPUTS = {"text_input", "max_tokens"}
_IMAGES = "image_url_input"
_REMEDY = (
    "set accumulate_tokens to true in the configuration of tensorrt_llm_bls and serve that model, "
    "or serve the model tensorrt_llm itself"
)


def recognise(metadata: service_pb2.ModelMetadataResponse, config: model_config_pb2.ModelConfig) -> Ensemble | None:
    """The contract of a decoupled model with the ensemble's tensors, else ``None``."""
    inputs, outputs = names(metadata)
    if not (inputs >= _REQUIRED_INPUTS and TEXT_OUTPUT in outputs):
        return None
    return Ensemble(
        inputs=inputs,
        batched=config.max_batch_size > 0,
        accumulates=parameter(config, "accumulate_tokens").lower() in {"true", "1"},
        tokens_per_block=tokens_per_block(config),
        guides=GUIDE_TYPE in inputs,
        max_images=max_images(metadata, _IMAGES),
    )


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A model's flavour of the contract; ``inputs``, ``batched`` and ``tokens_per_block`` as for ``TokenLevel``.

    ``accumulates``: each response carries the whole text so far.
    """

    inputs: frozenset[str]
    batched: bool
    accumulates: bool
    tokens_per_block: int
    guides: bool = False
    max_images: int = 0
    name: str = "ensemble"
    speaks_text: bool = True

    @property
    def remedy(self) -> str:
        """What repairs broken characters, unless it is in place."""
        return "" if self.accumulates else _REMEDY

    @property
    def call_guide_form(self) -> CallGuideForm | None:
        """The guide of calls in free text that the model takes, if any."""
        return "ebnf_grammar" if self.guides else None

    def request(self, model: str, generation: Generation) -> bytes:
        """The serialized ``ModelInferRequest``; optional inputs are sent only where the model has them."""
        request = InferRequest(model, generation, self.inputs, self.batched)
        request.texts("text_input", generation.prompt_text)
        request.int32("max_tokens", generation.max_tokens)
        request.flag("stream", "exclude_input_in_output", "return_num_input_tokens", "return_num_output_tokens")
        request.uint64("seed", generation.seed)
        # Decoding is greedy unless told otherwise, so OpenAI's defaults must be sent too.
        if generation.temperature == 0:
            request.int32("top_k", 1)
        else:
            request.fp32("temperature", generation.temperature)
            request.fp32("top_p", generation.top_p)
        if generation.end_ids:
            request.int32("end_id", generation.end_ids[0])
            request.int32("pad_id", generation.end_ids[0])
        # A running generation cannot be cancelled here, so the runtime must know where to stop.
        request.texts("stop_words", *generation.stop)
        request.texts(_IMAGES, *map(jpeg_data_url, generation.images))
        add_guide(request, generation)
        if self.tokens_per_block:
            request.flag("return_perf_metrics")
        return request.serialized()

    def decoder(self, generation: Generation, vocabulary: Vocabulary) -> TextDecoder:
        """A reader for the generation's responses."""
        return TextDecoder(generation, vocabulary, cumulative=self.accumulates, tokens_per_block=self.tokens_per_block)
