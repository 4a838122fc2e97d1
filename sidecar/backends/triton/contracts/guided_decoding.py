"""Guided decoding as TensorRT-LLM's Triton models take it: a type and a guide.

Source: TensorRT-LLM ``triton_backend/inflight_batcher_llm/src/utils.cc``; a type that it does not know is silently
ignored there.
"""

from __future__ import annotations

from sidecar.backends.triton.contracts.contract import Generation
from sidecar.backends.triton.contracts.tensors import InferRequest

GUIDE_TYPE = "guided_decoding_guide_type"


def add_guide(request: InferRequest, generation: Generation) -> None:
    """Put the guide of ``generation`` into ``request``: a JSON Schema, or a grammar of text with calls."""
    if generation.guide is not None:
        request.texts(GUIDE_TYPE, "json_schema")
        request.texts("guided_decoding_guide", generation.guide)
    elif generation.call_guide is not None:
        request.texts(GUIDE_TYPE, "ebnf_grammar")
        request.texts("guided_decoding_guide", generation.call_guide)
