"""Phi-4-mini: a list of JSON objects after a word or between tokens.

    functools[{"name": "f", "arguments": {"a": 1}}]
    <|tool_call|>[{"name": "f", "arguments": {"a": 1}}]<|/tool_call|>

Source: the model card of Phi-4-mini-instruct and the templates that runtimes ship for it.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser

MARKERS = ("<|tool_call|>", "functools", "<|/tool_call|>")


class Phi4MiniParser(JsonCallsParser):
    """Reads text with such calls."""

    begins = ("<|tool_call|>", "functools")
    ends = ("<|/tool_call|>",)
    control = ("<|tool_call|>", "<|/tool_call|>")


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "functools[" in template or "<|/tool_call|>" in template
