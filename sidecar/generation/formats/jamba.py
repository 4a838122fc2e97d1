"""Jamba and MiniMax M1: a list of JSON objects, or one a line, between tags.

    <tool_calls>[
        {"name": "f", "arguments": {"a": 1}}
    ]</tool_calls>

Source: what vLLM's parsers of Jamba and MiniMax M1 read.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser

MARKERS = ("<tool_calls>", "</tool_calls>")


class JambaParser(JsonCallsParser):
    """Reads text with such calls."""

    begins = ("<tool_calls>",)
    ends = ("</tool_calls>",)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<tool_calls>" in template
