"""FunctionGemma: an object with bare keys.

    <start_function_call>call:f{a:1,city:<escape>Paris<escape>}<end_function_call>

Source: the model card of FunctionGemma 270M.
"""

from __future__ import annotations

from sidecar.generation.shapes.bare_objects import BareObjectsParser

_BEGIN, _END, _QUOTE = "<start_function_call>", "<end_function_call>", "<escape>"
MARKERS = (_BEGIN, _END, _QUOTE)


class FunctionGemmaParser(BareObjectsParser):
    """Reads text with such calls."""

    begins = (_BEGIN,)
    ends = (_END,)
    control = MARKERS
    quote = _QUOTE


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return _BEGIN in template
