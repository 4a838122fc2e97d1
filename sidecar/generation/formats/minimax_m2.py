"""MiniMax M2: a tag per parameter with its bare value.

    <minimax:tool_call>
    <invoke name="f">
    <parameter name="a">1</parameter>
    </invoke>
    </minimax:tool_call>

Source: the chat template of MiniMax-M2.
"""

from __future__ import annotations

from sidecar.generation.shapes.tagged import TaggedParser

MARKERS = ("<minimax:tool_call>", "</minimax:tool_call>")


class MiniMaxM2Parser(TaggedParser):
    """Reads text with such calls."""

    call_tag = '<invoke name="'
    call_end = "</invoke>"
    parameter_tag = '<parameter name="'
    parameter_end = "</parameter>"
    before = ("<minimax:tool_call>",)
    after = ("</minimax:tool_call>",)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<minimax:tool_call>" in template
