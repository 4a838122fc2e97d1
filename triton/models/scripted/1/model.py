"""A model that plays a script found in its prompt, with the tensors of TensorRT-LLM's ``tensorrt_llm`` model.

The script language is described in the README of ``triton/``. Two environment variables set it up:
``TOKENIZER_DIR`` is the tokenizer directory whose ids it speaks; ``SCRIPTED_EVENT_LOG``, when set, is the file
to which it appends what happens to each request.
"""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

from event_log import EventLog
from player import Player
from script import Script
from tensorrt_llm_contract.generation import Rejected, Requests, pb_utils
from tensorrt_llm_contract.tensors import complete_config
from tokenizers import Tokenizer


class TritonPythonModel:
    """The class that Triton's Python backend looks for."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """Declare the tensors."""
        return complete_config(config)

    def initialize(self, args: dict[str, str]) -> None:
        """Load the tokenizer and start the player."""
        self._tokenizer = Tokenizer.from_file(f"{os.environ['TOKENIZER_DIR']}/tokenizer.json")
        self._log = EventLog(os.environ.get("SCRIPTED_EVENT_LOG"))
        self._requests = Requests()
        self._player = Player(self._log)

    def execute(self, requests: list[Any]) -> None:
        """Start each request's script and return at once, so that any number of them plays at a time."""
        for request in requests:
            generation = self._requests.accept(request)
            if generation is None:
                continue
            prompt = self._tokenizer.decode(generation.prompt_ids, skip_special_tokens=False)
            self._log.started(generation, prompt)
            try:
                script = Script.find(prompt, self._encode)
            except Rejected as rejection:
                generation.fail(str(rejection), pb_utils.TritonError.INVALID_ARG)
                self._log.write("error", generation, message=str(rejection))
            else:
                self._player.play(script, generation)

    def finalize(self) -> None:
        """End the player."""
        self._player.close()

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids
