"""LFM2: a list of Python calls between tokens; JSON where the system text asks for it.

    <|tool_call_start|>[f(a=1, b="x"), g()]<|tool_call_end|>
    <|tool_call_start|>[{"name": "f", "arguments": {"a": 1}}]<|tool_call_end|>

Source: the model cards of LFM2 and LFM2.5, and what SGLang's detector of that name reads.
"""

from __future__ import annotations

from sidecar.generation.formats.pythonic import PythonicParser
from sidecar.generation.source import Steps

MARKERS = ("<|tool_call_start|>", "<|tool_call_end|>")


class Lfm2Parser(PythonicParser):
    """Reads text with such calls."""

    begins = ("<|tool_call_start|>",)
    ends = ("<|tool_call_end|>",)
    control = MARKERS

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while (yield from self.text()):
            yield from self.fence()
            yield from self.source.literal("[")
            yield from self.source.space()
            if (yield from self.source.peek()) == "{":
                yield from self.calls()
            else:
                yield from self.python_calls()


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|tool_call_start|>" in template or "<|tool_list_start|>" in template
