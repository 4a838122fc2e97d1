"""Nemotron Nano 2 and Super 1.5: a list of JSON objects between tags.

    <TOOLCALL>[{"name": "f", "arguments": {"a": 1}}]</TOOLCALL>

Source: the chat templates of NVIDIA-Nemotron-Nano-9B-v2 and Llama-3_3-Nemotron-Super-49B-v1_5.
"""

from __future__ import annotations

from sidecar.generation.shapes.json_calls import JsonCallsParser

MARKERS = ("<TOOLCALL>", "</TOOLCALL>")


class NemotronParser(JsonCallsParser):
    """Reads text with such calls."""

    begins = ("<TOOLCALL>",)
    ends = ("</TOOLCALL>",)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<TOOLCALL>" in template
