"""SmolLM2-135M on the CPU, with TensorRT-LLM's token-level tensors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "runtime"))

from flavours.token_level import TokenLevel
from smollm2.model import SmolLM2


class TritonPythonModel(SmolLM2):
    """The class that Triton's Python backend looks for."""

    contract = TokenLevel
