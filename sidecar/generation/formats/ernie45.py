"""ERNIE 4.5 Thinking: a JSON object between tags; what is said stands between tags too.

    <response>
    Hello.
    </response>

    <tool_call>
    {"name": "f", "arguments": {"a": 1}}
    </tool_call>

Source: what vLLM's parsers of tools and reasoning of that name read.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser

MARKERS = ("<tool_call>", "</tool_call>", "<response>", "</response>")


class Ernie45Parser(JsonCallsParser):
    """Reads text with such calls."""

    begins = ("<tool_call>",)
    ends = ("</tool_call>",)
    control = ("<response>", "</response>")


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<tool_call>" in template and "<response>" in template
