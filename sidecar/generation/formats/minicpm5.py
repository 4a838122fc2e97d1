"""MiniCPM5: a tag per parameter with its bare value, which may stand in a CDATA section.

    <function name="f"><param name="a">1</param></function>

Source: what SGLang's detector of that name reads.
"""

from __future__ import annotations

from sidecar.generation.shapes.tagged import TaggedParser

MARKERS = ('<function name="', "</function>", '<param name="', "</param>")


class MiniCpm5Parser(TaggedParser):
    """Reads text with such calls."""

    call_tag = '<function name="'
    call_end = "</function>"
    parameter_tag = '<param name="'
    parameter_end = "</param>"
    frame = ("<![CDATA[", "]]>")


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return all(tag in template.replace("\\", "") for tag in ('<function name="', '<param name="'))
