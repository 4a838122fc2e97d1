"""Step-3: a tag per parameter with its bare value, between tokens.

    <｜tool_calls_begin｜>
    <｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f">
    <steptml:parameter name="a">1</steptml:parameter>
    </steptml:invoke><｜tool_call_end｜>
    <｜tool_calls_end｜>

Source: what SGLang's and vLLM's parsers of that name read.
"""

from __future__ import annotations

from sidecar.generation.shapes.tagged import TaggedParser

_CALLS, _CALL, _SEPARATOR = "<｜tool_calls_begin｜>", "<｜tool_call_begin｜>", "<｜tool_sep｜>"
_CALL_END, _CALLS_END = "<｜tool_call_end｜>", "<｜tool_calls_end｜>"
MARKERS = (_CALLS, _CALL, _SEPARATOR, _CALL_END, _CALLS_END)


class Step3Parser(TaggedParser):
    """Reads text with such calls."""

    call_tag = '<steptml:invoke name="'
    call_end = "</steptml:invoke>"
    parameter_tag = '<steptml:parameter name="'
    parameter_end = "</steptml:parameter>"
    before = (_CALLS, _CALL, f"function{_SEPARATOR}")
    after = (_CALL_END, _CALLS_END)
    control = MARKERS


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<steptml:invoke" in template
