"""Qwen3-Coder and Qwen3.5: a tag per parameter with its bare value, which becomes JSON as the schema asks.

    <tool_call>
    <function=f>
    <parameter=a>
    1
    </parameter>
    </function>
    </tool_call>

A parameter that may only be a string is passed on as it comes; others when they are complete.
Source: the chat templates of Qwen3-Coder and Qwen3.5.
"""

from __future__ import annotations

import re
from functools import cache

from sidecar.generation.argument_types import json_of, types_of
from sidecar.generation.calls import CallParser, Functions
from sidecar.generation.json_scanner import escaped
from sidecar.generation.markers import Markers
from sidecar.generation.source import Steps

MARKERS = ("<tool_call>", "</tool_call>")
# Models of this family leave out any of the tags but a function's and a parameter's first ones.
_VALUE_ENDS = ("</parameter>", "<parameter=", "</function>", "</tool_call>")
_VALUE_END = Markers(*_VALUE_ENDS, *("\n" + tag for tag in (*_VALUE_ENDS, "<function=", "<tool_call>")))
_KEY = re.compile(r"[^<>\n]*")


class QwenXmlParser(CallParser):
    """Reads text with such calls."""

    begins = ("<tool_call>", "<function=")
    ends = ("</parameter>", "</function>", "</tool_call>")

    def __init__(self, functions: Functions) -> None:
        super().__init__(functions)
        self._types = cache(lambda function, parameter: types_of(functions[function], parameter))

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while marker := (yield from self.text()):
            if marker == "<tool_call>":
                yield from self.source.space()
                marker = yield from self.source.literal("<function=")
            name = yield from self.word()
            if not marker or not self.named(name) or not (yield from self.source.literal(">")):
                self.give_up()
            elif self.close((yield from self._parameters(name))):
                yield from self.closing()

    def _parameters(self, name: str) -> Steps[bool]:
        """Read the parameters; tell whether the arguments are whole."""
        while True:
            yield from self.source.space()
            yield from self.source.literal("</parameter>")
            yield from self.source.space()
            if not (yield from self.source.literal("<parameter=")):
                if not self.functions[name] and not (yield from self.at_end()):
                    return (yield from self.nothing())
                ended = (yield from self.at_end()) or bool((yield from self.source.ahead(*self.begins)))
                return self.end_members(ended)
            key = yield from self.word(_KEY)
            if not (yield from self.source.literal(">")):
                return self.end_members(False)
            self.key(key)
            yield from self._value(self._types(name, key))

    def _value(self, types: frozenset[str]) -> Steps[None]:
        """Read a parameter's value. The line breaks around it are the template's."""
        yield from self.source.literal("\n")
        if types == {"string"}:
            self.argument('"')
            end = yield from self.source.until(_VALUE_END, self._string)
            if end or not self.source.cut:
                self.argument('"')
        else:
            parts: list[str] = []
            end = yield from self.source.until(_VALUE_END, parts.append)
            if end or not self.source.cut:
                self.argument(json_of("".join(parts), types))
        if end.startswith("\n"):
            self.source.take(1)

    def _string(self, text: str) -> None:
        self.sink.arguments(escaped(text))


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<function=" in template and "<parameter=" in template
