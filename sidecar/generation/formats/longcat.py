"""LongCat-Flash: a JSON object between tags, or the name and pairs of a key and its bare value.

    <longcat_tool_call>
    {"name": "f", "arguments": {"a": 1}}
    </longcat_tool_call>

    <longcat_tool_call>f
    <longcat_arg_key>a</longcat_arg_key>
    <longcat_arg_value>1</longcat_arg_value>
    </longcat_tool_call>

Source: the model card of LongCat-Flash-Chat, and generations of LongCat-Flash-Thinking that others keep.
"""

from __future__ import annotations

from sidecar.generation.shapes.key_values import KeyValueParser

MARKERS = (
    "<longcat_tool_call>",
    "<longcat_arg_key>",
    "</longcat_arg_key>",
    "<longcat_arg_value>",
    "</longcat_arg_value>",
    "</longcat_tool_call>",
)


class LongCatParser(KeyValueParser):
    """Reads text with such calls."""

    call_tag = "<longcat_tool_call>"
    call_end = "</longcat_tool_call>"
    parameter_tag = "<longcat_arg_key>"
    key_end = "</longcat_arg_key>"
    value_tag = "<longcat_arg_value>"
    parameter_end = "</longcat_arg_value>"


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<longcat_tool_call>" in template
