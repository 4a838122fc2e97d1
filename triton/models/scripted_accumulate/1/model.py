"""The scripted model, with the tensors of TensorRT-LLM's ensemble."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "runtime"))

from flavours.ensemble import Ensemble
from scripted.model import Scripted


class TritonPythonModel(Scripted):
    """The class that Triton's Python backend looks for."""

    contract = Ensemble
