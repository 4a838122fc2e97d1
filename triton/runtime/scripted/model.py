"""The scripted model behind any of the contracts.

The script language is described in the README of ``triton/``. Two environment variables set it up:
``TOKENIZER_DIR`` is the tokenizer directory whose ids it speaks; ``SCRIPTED_EVENT_LOG``, when set, is the file
to which it appends what happens to each request. While there is a file of that name with ``.stuck`` added, requests
hang, whatever they say.
"""

import json
import os
import time
from pathlib import Path
from typing import Any, ClassVar

from flavours.contract import Contract
from flavours.generation import Requests, pb_utils
from flavours.inputs import Rejected
from flavours.tensors import declare
from flavours.vocabulary import Vocabulary

from .event_log import EventLog
from .player import Player
from .script import Hang, Script

_LOOK_SECONDS = 0.05


class Scripted:
    """What Triton's Python backend calls; a model names its contract."""

    contract: ClassVar[type[Contract]]

    @classmethod
    def auto_complete_config(cls, config: Any) -> Any:
        """Declare the tensors."""
        return declare(config, cls.contract.inputs, cls.contract.outputs)

    def initialize(self, args: dict[str, str]) -> None:
        """Load the tokenizer and start the player; where the parameter ``load_when`` names a file, once it exists."""
        parameters = json.loads(args["model_config"])["parameters"]
        settings = {name: parameter["string_value"] for name, parameter in parameters.items()}
        while "load_when" in settings and not Path(settings["load_when"]).exists():
            time.sleep(_LOOK_SECONDS)
        self._vocabulary = Vocabulary(Path(os.environ["TOKENIZER_DIR"]))
        event_log = os.environ.get("SCRIPTED_EVENT_LOG")
        self._log = EventLog(event_log)
        self._stuck = Path(f"{event_log}.stuck") if event_log else None
        self._requests = Requests(self.contract(self._vocabulary, settings))
        self._player = Player(self._log)

    def execute(self, requests: list[Any]) -> None:
        """Start each request's script and return at once, so that any number of them plays at a time."""
        for request in requests:
            generation = self._requests.accept(request)
            if generation is None:
                continue
            prompt = self._vocabulary.decode(generation.prompt_ids, special=True)
            self._log.started(generation, prompt)
            try:
                hangs = self._stuck is not None and self._stuck.exists()
                script = Script((Hang(),)) if hangs else Script.find(prompt, self._vocabulary.encode)
            except Rejected as rejection:
                generation.fail(str(rejection), pb_utils.TritonError.INVALID_ARG)
                self._log.write("error", generation, message=str(rejection))
            else:
                self._player.play(script, generation)

    def finalize(self) -> None:
        """End the player."""
        self._player.close()
