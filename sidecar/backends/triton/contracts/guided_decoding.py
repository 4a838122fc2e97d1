"""Guided decoding as TensorRT-LLM's Triton models take it: a type and a guide.

Source: TensorRT-LLM ``triton_backend/inflight_batcher_llm/src/utils.cc``; a type that it does not know is silently
ignored there.
"""

from __future__ import annotations

from sidecar.backends.triton.contracts.tensors import InferRequest

GUIDE_TYPE = "guided_decoding_guide_type"


def add_guide(request: InferRequest, guide: str | None) -> None:
    """Put ``guide``, a JSON Schema, into ``request``."""
    if guide is None:
        return
    request.texts(GUIDE_TYPE, "json_schema")
    request.texts("guided_decoding_guide", guide)
