"""Llama 3: bare JSON objects, with a token before them or without, several separated by semicolons.

    <|python_tag|>{"name": "f", "parameters": {"a": 1}}; {"name": "g", "parameters": {}}

Without the token, calls are looked for only at the beginning, where the model puts them instead of an answer.
Source: the chat templates and model cards of Llama 3.1 to 3.3.
"""

from __future__ import annotations

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Steps

MARKERS = ("<|python_tag|>",)


class LlamaJsonParser(CallParser):
    """Reads text with such calls."""

    begins = MARKERS
    control = MARKERS

    def read(self) -> Steps[None]:
        """Calls at the beginning, then text and marked calls in turn."""
        yield from self.source.space()
        self.hold()
        yield from self.calls(bare=True)
        while (yield from self.text()):
            yield from self.calls(bare=True)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|python_tag|>" in template or '"parameters": dictionary of argument name' in template
