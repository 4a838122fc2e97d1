"""SmolLM2-135M on the CPU, with the tensors of TensorRT-LLM's LLM API model."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "runtime"))

from flavours.llm_api import LlmApi
from smollm2.model import SmolLM2


class TritonPythonModel(SmolLM2):
    """The class that Triton's Python backend looks for."""

    contract = LlmApi
