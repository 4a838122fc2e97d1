"""Mistral: a list of JSON objects after a token, or, in newer models, a token, the name and the arguments.

    [TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]
    [TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}

Source: the tokenizers v3, v11 and v13 of mistral-common.
"""

from __future__ import annotations

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Markers, Steps

MARKERS = ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]")
_BEGIN = Markers("[TOOL_CALLS]")


class MistralParser(CallParser):
    """Reads text with such calls."""

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while marker := (yield from self.source.until(_BEGIN, self.sink.text)):
            self.hold(marker)
            yield from self.source.space()
            if (yield from self.source.literal("[")):
                yield from self.source.space()
                yield from self.calls()
            else:
                yield from self._named_call()

    def _named_call(self) -> Steps[None]:
        name = yield from self.word()
        if (yield from self.source.literal("[CALL_ID]", "[ARGS]")) == "[CALL_ID]":
            yield from self.word()
            yield from self.source.literal("[ARGS]")
        yield from self.source.space()
        yield from self.arguments(name)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "[TOOL_CALLS]" in template
