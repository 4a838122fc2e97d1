"""InternLM 2 and 2.5, Intern-S1: a JSON object between tokens.

    <|action_start|><|plugin|>
    {"name": "f", "parameters": {"a": 1}}<|action_end|>

Source: the chat template that vLLM ships for InternLM2.5, and what SGLang's detector of that name reads.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser

MARKERS = ("<|action_start|>", "<|plugin|>", "<|action_end|>")


class InternLmParser(JsonCallsParser):
    """Reads text with such calls."""

    begins = ("<|action_start|>",)
    lead = ("<|plugin|>",)
    ends = ("<|action_end|>",)
    control = MARKERS


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|action_start|>" in template
