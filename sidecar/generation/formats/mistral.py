"""Mistral: a list of JSON objects after a token, or, in newer models, a token, the name and the arguments.

    [TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]
    [TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}

Source: the tokenizers v3, v11 and v13 of mistral-common.
"""

from __future__ import annotations

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Steps

MARKERS = ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]")


class MistralParser(CallParser):
    """Reads text with such calls."""

    begins = ("[TOOL_CALLS]",)
    control = MARKERS

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while (yield from self.text()):
            yield from self.source.space()
            if (yield from self.source.ahead("[ARGS]", "[CALL_ID]")) or (yield from self.source.peek()) in "[{`":
                yield from self.calls()
            else:
                yield from self._named_call()

    def _named_call(self) -> Steps[None]:
        name = yield from self.word()
        yield from self.source.space()
        if (yield from self.source.literal("[CALL_ID]")):
            yield from self.source.space()
            yield from self.word()
            yield from self.source.space()
        yield from self.source.literal("[ARGS]")
        if (yield from self.arguments(name)):
            yield from self.closing()


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "[TOOL_CALLS]" in template
