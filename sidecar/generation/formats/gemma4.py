"""Gemma 4: an object with bare keys.

    <|tool_call>call:f{a:1,city:<|"|>Paris<|"|>}<tool_call|>

Source: the chat template of Gemma 4.
"""

from __future__ import annotations

from sidecar.generation.shapes.bare_objects import BareObjectsParser

_BEGIN, _END, _QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
MARKERS = (_BEGIN, _END, _QUOTE)


class Gemma4Parser(BareObjectsParser):
    """Reads text with such calls."""

    begins = (_BEGIN,)
    ends = (_END,)
    control = MARKERS
    quote = _QUOTE


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return _BEGIN in template
