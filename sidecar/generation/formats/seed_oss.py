"""Seed-OSS: a tag per parameter with its bare value.

    <seed:tool_call>
    <function=f>
    <parameter=a>1</parameter>
    </function>
    </seed:tool_call>

Source: the chat template of Seed-OSS-36B-Instruct.
"""

from __future__ import annotations

from sidecar.generation.shapes.tagged import TaggedParser

MARKERS = ("<seed:tool_call>", "</seed:tool_call>")


class SeedOssParser(TaggedParser):
    """Reads text with such calls."""

    call_tag = "<function="
    call_end = "</function>"
    parameter_tag = "<parameter="
    parameter_end = "</parameter>"
    before = ("<seed:tool_call>",)
    after = ("</seed:tool_call>",)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<seed:tool_call>" in template
