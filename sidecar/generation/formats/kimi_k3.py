"""Kimi K3: a tag per parameter with its bare value, in a channel of its own; an attribute tells strings from JSON.

    <|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>
    <|open|>argument key="a" type="number"<|sep|>1<|close|>argument<|sep|>
    <|close|>call<|sep|><|close|>tools<|sep|>

All without line breaks. Source: the chat template of Kimi-K3.
"""

from __future__ import annotations

from html import unescape

from sidecar.generation.shapes.tagged import TaggedParser
from sidecar.generation.source import Steps

_TOKENS = ("<|open|>", "<|close|>", "<|sep|>")
_TOOLS, _TOOLS_END, _MESSAGE_END = "<|open|>tools<|sep|>", "<|close|>tools<|sep|>", "<|close|>message<|sep|>"
_RESPONSE, _RESPONSE_END = "<|open|>response<|sep|>", "<|close|>response<|sep|>"
MARKERS = (*_TOKENS, _TOOLS, _TOOLS_END, _MESSAGE_END, _RESPONSE, _RESPONSE_END)


class KimiK3Parser(TaggedParser):
    """Reads text with such calls; text stands in a channel too."""

    call_tag = '<|open|>call tool="'
    call_end = "<|close|>call<|sep|>"
    parameter_tag = '<|open|>argument key="'
    parameter_end = "<|close|>argument<|sep|>"
    sign = "<|sep|>"
    before = (_TOOLS,)
    after = (_TOOLS_END, _MESSAGE_END)
    control = (_RESPONSE, _RESPONSE_END, _TOOLS, _TOOLS_END, _MESSAGE_END)

    def parameter(self) -> Steps[tuple[str, bool] | None]:
        """Read the rest of a parameter's opening tag, in whose attributes quotes and ampersands are escaped."""
        parameter = yield from super().parameter()
        return (unescape(parameter[0]), parameter[1]) if parameter else None


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return all(token in template for token in _TOKENS)
