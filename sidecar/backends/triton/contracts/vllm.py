"""The contract of Triton's vLLM backend: text in and text out, sampling as one JSON object.

Source: triton-inference-server's ``vllm_backend``. Responses carry the new text, whole characters only; the last tells
why the answer ended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sidecar.backends.triton.contracts.contract import CallGuideForm, Generation, Vocabulary
from sidecar.backends.triton.contracts.images import max_images, plain_base64
from sidecar.backends.triton.contracts.tensors import InferRequest, names, parameter
from sidecar.backends.triton.contracts.text import TEXT_OUTPUT, TextDecoder
from sidecar.backends.triton.protocol import model_config_pb2, service_pb2

_REQUIRED_INPUTS = {"text_input", "sampling_parameters"}
_IMAGES = "image"
_GUIDE_PARAMETER = "structured_outputs"
_INT63 = 2**63 - 1


def recognise(metadata: service_pb2.ModelMetadataResponse, config: model_config_pb2.ModelConfig) -> Vllm | None:
    """The contract of a decoupled model with the vLLM backend's tensors, else ``None``."""
    inputs, outputs = names(metadata)
    if not (inputs >= _REQUIRED_INPUTS and TEXT_OUTPUT in outputs):
        return None
    return Vllm(
        inputs=inputs,
        batched=config.max_batch_size > 0,
        guide_parameter=parameter(config, "guide_parameter") or _GUIDE_PARAMETER,
        max_images=max_images(metadata, _IMAGES),
    )


@dataclass(frozen=True, slots=True)
class Vllm:
    """A model's flavour of the contract; ``inputs`` and ``batched`` as for ``TokenLevel``.

    ``guide_parameter`` is the sampling parameter that takes guides: ``structured_outputs``, before Triton 25.11
    ``guided_decoding``. Nothing but a parameter of that name in the model's configuration can tell.
    """

    inputs: frozenset[str]
    batched: bool
    guide_parameter: str = _GUIDE_PARAMETER
    guides: bool = True
    max_images: int = 0
    name: str = "vllm"
    speaks_text: bool = True
    remedy: str = ""

    @property
    def call_guide_form(self) -> CallGuideForm | None:
        """The guide of calls in free text that the model takes, if any."""
        return "structural_tag" if self.guide_parameter == _GUIDE_PARAMETER else None

    def request(self, model: str, generation: Generation) -> bytes:
        """The serialized ``ModelInferRequest``; optional inputs are sent only where the model has them."""
        request = InferRequest(model, generation, self.inputs, self.batched)
        request.texts("text_input", generation.prompt_text)
        request.texts(_IMAGES, *map(plain_base64, generation.images))
        # Without this one object the backend takes the request's parameters, where a list or the id would break it.
        request.texts("sampling_parameters", json.dumps(self._sampling(generation)))
        request.flag("stream", "exclude_input_in_output")
        request.flag("return_finish_reason", "return_num_input_tokens", "return_num_output_tokens")
        return request.serialized()

    def decoder(self, generation: Generation, vocabulary: Vocabulary) -> TextDecoder:
        """A reader for the generation's responses."""
        return TextDecoder(generation, vocabulary, cumulative=False)

    def _sampling(self, generation: Generation) -> dict[str, Any]:
        """vLLM's ``SamplingParams``. Its limit is 16 tokens unless told otherwise; its seeds are signed."""
        sampling: dict[str, Any] = {
            "max_tokens": generation.max_tokens,
            "temperature": generation.temperature,
            "top_p": generation.top_p,
            "seed": generation.seed & _INT63,
            # Markers of reasoning and calls may be special tokens. The token that ends an answer is left out anyway.
            "skip_special_tokens": False,
        }
        # No stop strings: the reader cuts at them and cancels.
        if generation.end_ids:
            sampling["stop_token_ids"] = list(generation.end_ids)
        if generation.guide is not None:
            sampling[self.guide_parameter] = _guide_text("json", json.loads(generation.guide))
        elif generation.call_guide is not None:
            # A structural tag is itself a document, whatever holds it.
            sampling[self.guide_parameter] = _guide_text("structural_tag", generation.call_guide)
        return sampling


def _guide_text(kind: str, guide: Any) -> str:
    """The guide as the backend takes it: a JSON document inside the JSON document."""
    return json.dumps({kind: guide})
