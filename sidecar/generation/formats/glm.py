"""GLM-4.5 to GLM-5: the name, then pairs of a key and its bare value.

    <tool_call>f
    <arg_key>a</arg_key>
    <arg_value>1</arg_value>
    </tool_call>

From GLM-4.7 on there are no line breaks. Source: the chat templates of GLM-4.5, 4.6 and 4.7.
"""

from __future__ import annotations

from sidecar.generation.shapes.key_values import KeyValueParser

MARKERS = ("<tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "</tool_call>")


class GlmParser(KeyValueParser):
    """Reads text with such calls."""

    call_tag = "<tool_call>"
    call_end = "</tool_call>"
    parameter_tag = "<arg_key>"
    key_end = "</arg_key>"
    value_tag = "<arg_value>"
    parameter_end = "</arg_value>"


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    # Hunyuan's third generation writes a separator after the name, and suffixes of its own.
    return "<arg_key>" in template and "<tool_call>" in template and "<tool_sep>" not in template
