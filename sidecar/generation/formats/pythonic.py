"""Llama 4 and small Llama 3.2: a list of Python calls, with tokens around it or without.

    [f(a=1, b="x"), g()]
    <|python_start|>[f(a=1, b="x"), g()]<|python_end|>

Without the token, calls are looked for only at the beginning, where the model puts them instead of an answer.
Source: the chat templates and model cards of Llama 3.2 and Llama 4.
"""

from __future__ import annotations

import json
import re
from typing import ClassVar

from sidecar.generation.calls import CallParser, Functions
from sidecar.generation.json_scanner import JsonScanner
from sidecar.generation.source import Markers, Steps

MARKERS = ("<|python_start|>", "<|python_end|>")
_BEGIN = Markers("<|python_start|>")


class PythonScanner(JsonScanner):
    """Reads Python's literals, and passes on the JSON of the same values."""

    strings: ClassVar[dict[str, re.Pattern[str]]] = {
        quote: re.compile(rf'[^{quote}"\\\x00-\x1f]*') for quote in ('"', "'")
    }
    escape: ClassVar[re.Pattern[str]] = re.compile(
        r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^xuU])", re.DOTALL
    )
    escape_begun: ClassVar[re.Pattern[str]] = re.compile(r"\\(?:x[0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?")
    constants: ClassVar[dict[str, str]] = {
        "True": "true",
        "False": "false",
        "None": "null",
        "true": "true",
        "false": "false",
        "null": "null",
    }
    _escapes: ClassVar[dict[str, str]] = {
        "\\": "\\",
        "'": "'",
        '"': '"',
        "a": "\a",
        "b": "\b",
        "f": "\f",
        "n": "\n",
        "r": "\r",
        "t": "\t",
        "v": "\v",
        "\n": "",
    }

    def unescaped(self, escape: str) -> str:
        """The JSON of the character; as in Python, an unknown escape stands for itself."""
        kind = escape[1]
        if kind in "xuU":
            code = int(escape[2:], 16)
            return json.dumps(chr(code) if code < 0x110000 else escape)[1:-1]
        return json.dumps(self._escapes.get(kind, escape), ensure_ascii=False)[1:-1]

    def cut(self, rest: str) -> str:
        """Half of an escape or a constant of Python is no JSON, and stands for nothing."""
        return ""


class PythonicParser(CallParser):
    """Reads text with such calls."""

    def __init__(self, functions: Functions) -> None:
        super().__init__(functions)
        self.json = PythonScanner(self.source)

    def read(self) -> Steps[None]:
        """Calls at the beginning, then text and marked calls in turn."""
        yield from self.source.space()
        self.hold()
        yield from self._list()
        while marker := (yield from self.source.until(_BEGIN, self.sink.text)):
            self.hold(marker)
            yield from self._list()

    def _list(self) -> Steps[None]:
        yield from self.source.space()
        if not (yield from self.source.literal("[")):
            self.give_up()
            return
        yield from self.source.space()
        while (yield from self._call()):
            if not (yield from self.separator(",")):
                if (yield from self.closing("]")):
                    yield from self.closing("<|python_end|>")
                return

    def _call(self) -> Steps[bool]:
        name = yield from self.word()
        if name not in self.functions or not (yield from self.source.literal("(")):
            self.give_up()
            return False
        self.open(name)
        whole = yield from self._arguments()
        self.close(whole)
        return whole

    def _arguments(self) -> Steps[bool]:
        before = "{"
        yield from self.source.space()
        ended = yield from self.source.literal(")")
        while not ended:
            self.hold()
            key = yield from self.word()
            yield from self.source.space()
            if not key or not (yield from self.source.literal("=")):
                return False
            self.source.release()
            self.sink.arguments(f"{before}{json.dumps(key, ensure_ascii=False)}: ")
            before = ", "
            yield from self.source.space()
            if not (yield from self.json.value(self.sink.arguments)):
                return False
            yield from self.source.space()
            delimiter = yield from self.source.literal(",", ")")
            if not delimiter:
                return False
            yield from self.source.space()
            ended = delimiter if delimiter == ")" else (yield from self.source.literal(")"))
        self.sink.arguments("{}" if before == "{" else "}")
        return True


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|python_start|>" in template or "[func_name1(" in template
