"""Kimi K2, K2.5 and K2.6: an id that holds the name, and JSON, between tokens.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>
    <|tool_calls_section_end|>

Source: the chat templates of Kimi-K2-Instruct and Kimi-K2-Thinking, and the guide to tool calls beside them.
"""

from __future__ import annotations

from sidecar.generation.shapes.named_json import NamedJsonParser

_CALL, _ARGUMENTS, _CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
# The models write the plural of their template, and now and then the singular.
_BEGINS = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_ENDS = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
MARKERS = (*_BEGINS, _CALL, _ARGUMENTS, _CALL_END, *_ENDS)


class KimiK2Parser(NamedJsonParser):
    """Reads text with such calls."""

    begins = (*_BEGINS, _CALL)
    ends = (_CALL_END, *_ENDS)
    control = MARKERS
    call_marker = _CALL
    arguments_marker = _ARGUMENTS


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|tool_calls_section_begin|>" in template
