"""Hermes and Qwen: a JSON object between tags.

    <tool_call>
    {"name": "f", "arguments": {"a": 1}}
    </tool_call>

Source: the chat templates of Hermes 2 Pro, Qwen2.5 and Qwen3.
"""

from __future__ import annotations

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Steps

MARKERS = ("<tool_call>", "</tool_call>")


class HermesParser(CallParser):
    """Reads text with such calls."""

    begins = ("<tool_call>",)
    ends = ("</tool_call>",)

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while (yield from self.text()):
            yield from self.calls()


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<tool_call>" in template and '"arguments"' in template.replace("\\", "")
