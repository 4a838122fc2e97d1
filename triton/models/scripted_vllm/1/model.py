"""The scripted model, with the tensors of the vLLM backend."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "runtime"))

from flavours.vllm import Vllm
from scripted.model import Scripted


class TritonPythonModel(Scripted):
    """The class that Triton's Python backend looks for."""

    contract = Vllm
