"""xLAM 2: a bare list of JSON objects instead of an answer.

    [{"name": "f", "arguments": {"a": 1}}]

Source: the chat templates that vLLM ships for xLAM-2 on Llama and on Qwen.
"""

from __future__ import annotations

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Steps

MARKERS: tuple[str, ...] = ()


class XlamParser(CallParser):
    """Reads calls at the beginning, where the model puts them."""

    def read(self) -> Steps[None]:
        """The calls, if any, then whatever follows."""
        yield from self.source.space()
        self.hold()
        yield from self.calls(bare=True)
        yield from self.source.rest(self.sink.text)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "make calls in a single JSON array" in template
