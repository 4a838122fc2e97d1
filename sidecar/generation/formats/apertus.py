"""Apertus: a list of JSON objects with the name as the key of the arguments, between tokens.

    <|tools_prefix|>[{"f": {"a": 1}}]<|tools_suffix|>

Source: the chat template that vLLM ships for Apertus.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser
from sidecar.generation.source import Steps

MARKERS = ("<|tools_prefix|>", "<|tools_suffix|>")


class ApertusParser(JsonCallsParser):
    """Reads text with such calls."""

    begins = ("<|tools_prefix|>",)
    ends = ("<|tools_suffix|>",)
    control = MARKERS

    def call(self, *, bare: bool = False) -> Steps[bool]:
        """Read one such object; tell whether a call came of it."""
        name = None
        if (yield from self.source.literal("{")):
            yield from self.source.space()
            name = yield from self.json.text()
            yield from self.source.space()
        if name is None or not (yield from self.source.literal(":")):
            self.give_up()
            return False
        yield from self.source.space()
        return (yield from self.arguments(name))


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|tools_prefix|>" in template
