"""The scripted model, with TensorRT-LLM's token-level tensors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "runtime"))

from flavours.token_level import TokenLevel
from scripted.model import Scripted


class TritonPythonModel(Scripted):
    """The class that Triton's Python backend looks for."""

    contract = TokenLevel
