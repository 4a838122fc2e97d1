"""Qwen3-Coder and Qwen3.5: a tag per parameter with its bare value, which becomes JSON as the schema asks.

    <tool_call>
    <function=f>
    <parameter=a>
    1
    </parameter>
    </function>
    </tool_call>

Nemotron 3, MiMo, Step-3.5 and Granite 4.2 write the same. Source: the chat templates of Qwen3-Coder and Qwen3.5.
"""

from __future__ import annotations

from sidecar.generation.shapes.tagged import TaggedParser

MARKERS = ("<tool_call>", "</tool_call>")


class QwenXmlParser(TaggedParser):
    """Reads text with such calls. The line breaks around a value are the template's."""

    call_tag = "<function="
    call_end = "</function>"
    parameter_tag = "<parameter="
    parameter_end = "</parameter>"
    before = ("<tool_call>",)
    after = ("</tool_call>",)
    frame = ("\n", "\n")


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<function=" in template and "<parameter=" in template
