"""Granite 3 and Granite 20B Function Calling: a list of JSON objects, or a single one, after a marker without an end.

    <|tool_call|>[{"name": "f", "arguments": {"a": 1}}]
    <function_call> {"name": "f", "arguments": {"a": 1}}

Source: the chat templates that vLLM ships for these models, and what its parsers of that name read.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser

MARKERS = ("<|tool_call|>", "<tool_call>", "<function_call>", "</tool_call>")


class GraniteParser(JsonCallsParser):
    """Reads text with such calls."""

    begins = ("<|tool_call|>", "<tool_call>", "<function_call>")
    ends = ("</tool_call>",)
    control = ("<|tool_call|>",)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|tool_call|>" in template or "<function_call>" in template
