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

import json
import re
from functools import cache

from sidecar.generation.argument_types import json_of, types_of
from sidecar.generation.calls import CallParser, Functions
from sidecar.generation.json_scanner import escaped
from sidecar.generation.source import Markers, Steps

MARKERS = ("<tool_call>", "</tool_call>")
# Models of this family sometimes leave out the outer tag, and the end of a parameter before the next line's tag.
_BEGIN = Markers("<tool_call>", "<function=")
_VALUE_END = Markers("\n</parameter>", "</parameter>", "\n<parameter=", "\n</function>")
_KEY = re.compile(r"[^<>\n]*")


class QwenXmlParser(CallParser):
    """Reads text with such calls."""

    def __init__(self, functions: Functions) -> None:
        super().__init__(functions)
        self._types = cache(lambda function, parameter: types_of(functions[function], parameter))

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while marker := (yield from self.source.until(_BEGIN, self.sink.text)):
            self.hold(marker)
            if marker == "<tool_call>":
                yield from self.source.space()
                marker = yield from self.source.literal("<function=")
            name = yield from self.word()
            if not marker or name not in self.functions or not (yield from self.source.literal(">")):
                self.give_up()
                continue
            self.open(name)
            whole = yield from self._parameters(name)
            self.close(whole)
            if whole:
                yield from self.closing("</tool_call>")

    def _parameters(self, name: str) -> Steps[bool]:
        before = "{"
        while True:
            yield from self.source.space()
            self.hold()
            tag = yield from self.source.literal("<parameter=", "</function>")
            if tag == "</function>":
                self.sink.arguments("{}" if before == "{" else "}")
                return True
            key = yield from self.word(_KEY)
            if not tag or not (yield from self.source.literal(">")):
                return False
            self.source.release()
            self.sink.arguments(f"{before}{json.dumps(key, ensure_ascii=False)}: ")
            before = ", "
            if not (yield from self._value(self._types(name, key))):
                return False

    def _value(self, types: frozenset[str]) -> Steps[bool]:
        """Read a parameter's value and its end. The line breaks around the value are the template's."""
        yield from self.source.literal("\n")
        if types == {"string"}:
            self.sink.arguments('"')
            end = yield from self.source.until(_VALUE_END, lambda text: self.sink.arguments(escaped(text)))
            self.sink.arguments('"' if end else "")
        else:
            parts: list[str] = []
            end = yield from self.source.until(_VALUE_END, parts.append)
            self.sink.arguments(json_of("".join(parts), types))
        if end.endswith("</parameter>"):
            self.source.take(len(end))
        return bool(end)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<function=" in template and "<parameter=" in template
