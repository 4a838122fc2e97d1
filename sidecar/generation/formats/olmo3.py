"""Olmo 3: Python calls, one a line, between tags.

    <function_calls>
    f(a=1, b="x")
    g()
    </function_calls>

Source: the chat template that vLLM ships for Olmo 3.
"""

from __future__ import annotations

from typing import ClassVar

from sidecar.generation.formats.pythonic import PythonicParser
from sidecar.generation.source import Steps

MARKERS = ("<function_calls>", "</function_calls>")


class Olmo3Parser(PythonicParser):
    """Reads text with such calls."""

    begins = ("<function_calls>",)
    ends = ("</function_calls>",)
    control: ClassVar[tuple[str, ...]] = ()

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while (yield from self.text()):
            yield from self.fence()
            yield from self.source.literal("[")
            yield from self.python_calls()


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<function_calls>" in template
