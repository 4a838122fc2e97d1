"""The scripted model's diary, one JSON object per line, from which tests read what the model saw and when."""

import json
import time
from pathlib import Path
from typing import Any

from flavours.generation import Generation

# Long inputs that say nothing about how a request was made.
_LEFT_OUT = {"input_ids", "text_input", "embedding_bias"}
# Requests that are nobody's: the sidecar sends them to see whether the model answers.
_CANARY = "canary_"


class EventLog:
    """Appends lines with ``time`` (seconds), ``event``, ``id`` and details to a file, or nowhere without a path."""

    def __init__(self, path: str | None) -> None:
        self._file = Path(path).open("a", buffering=1, encoding="utf-8") if path else None  # noqa: SIM115

    def started(self, generation: Generation, prompt: str) -> None:
        """Note a request with the inputs it came with."""
        values = {name: _plain(value) for name, value in generation.sent.items() if name not in _LEFT_OUT}
        self.write("start", generation, inputs=values, prompt_tokens=len(generation.prompt_ids), prompt=prompt)

    def write(self, event: str, generation: Generation, **details: Any) -> None:
        """Note an event of a client's request."""
        if self._file and not generation.request_id.startswith(_CANARY):
            line = {"time": time.time(), "event": event, "id": generation.request_id, **details}
            self._file.write(json.dumps(line) + "\n")


def _plain(values: list[Any]) -> Any:
    """A JSON value: text decoded, a single value without its list."""
    texts = [value.decode(errors="replace") if isinstance(value, bytes) else value for value in values]
    return texts[0] if len(texts) == 1 else texts
