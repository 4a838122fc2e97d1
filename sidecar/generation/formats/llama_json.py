"""Llama 3: bare JSON objects, with a token before them or without, several separated by semicolons.

    <|python_tag|>{"name": "f", "parameters": {"a": 1}}; {"name": "g", "parameters": {}}

Without the token, calls are looked for only at the beginning, where the model puts them instead of an answer.
Source: the chat templates and model cards of Llama 3.1 to 3.3.
"""

from __future__ import annotations

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Markers, Steps

MARKERS = ("<|python_tag|>",)
_BEGIN = Markers(*MARKERS)


class LlamaJsonParser(CallParser):
    """Reads text with such calls."""

    def read(self) -> Steps[None]:
        """Calls at the beginning, then text and marked calls in turn."""
        yield from self.source.space()
        self.hold()
        yield from self._calls()
        while marker := (yield from self.source.until(_BEGIN, self.sink.text)):
            self.hold(marker)
            yield from self._calls()

    def _calls(self) -> Steps[None]:
        yield from self.source.space()
        while (yield from self.call(bare=True)):
            yield from self.separator(";")
            yield from self.source.literal(*MARKERS)
            yield from self.source.space()


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|python_tag|>" in template or '"parameters": dictionary of argument name' in template
