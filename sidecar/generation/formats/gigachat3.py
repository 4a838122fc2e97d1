"""GigaChat 3: a JSON object after a token, or as a message of its own role.

    <|function_call|>{"name": "f", "arguments": {"a": 1}}
    <|message_sep|>

    function call<|role_sep|>
    {"name": "f", "arguments": {"a": 1}}<|message_sep|>

Source: the chat template of GigaChat3-10B-A1.8B.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser

MARKERS = ("<|function_call|>", "<|role_sep|>", "<|message_sep|>")


class GigaChat3Parser(JsonCallsParser):
    """Reads text with such calls."""

    begins = ("<|function_call|>", "function call<|role_sep|>")
    control = MARKERS


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|role_sep|>" in template and "function call" in template
