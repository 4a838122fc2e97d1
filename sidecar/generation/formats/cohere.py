"""Cohere Command R7B, Command A and later: a list of JSON objects with names of their own, between tokens.

    <|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "f", "parameters": {"a": 1}}
    ]<|END_ACTION|>

Source: the chat templates of Command R7B and Command A.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser

MARKERS = (
    "<|START_ACTION|>",
    "<|END_ACTION|>",
    "<|START_RESPONSE|>",
    "<|END_RESPONSE|>",
    "<|START_TEXT|>",
    "<|END_TEXT|>",
)


class CohereParser(JsonCallsParser):
    """Reads text with such calls; text stands between tokens too, which later models spell otherwise."""

    begins = ("<|START_ACTION|>",)
    ends = ("<|END_ACTION|>",)
    control = MARKERS


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|START_ACTION|>" in template
