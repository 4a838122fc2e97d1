"""Hunyuan A13B: a list of JSON objects between tags; what is said after the reasoning stands between tags too.

    <answer>
    Hello.
    </answer>
    <tool_calls>[{"name": "f", "arguments": {"a": 1}}]</tool_calls>

Source: the chat template that vLLM ships for Hunyuan-A13B, and what its reasoning parser of that name reads.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser

MARKERS = ("<tool_calls>", "</tool_calls>", "<answer>", "</answer>")


class HunyuanParser(JsonCallsParser):
    """Reads text with such calls."""

    begins = ("<tool_calls>",)
    ends = ("</tool_calls>",)
    control = ("<answer>", "</answer>")


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<tool_calls>" in template and ("<answer>" in template or "<|extra_0|>" in template)
