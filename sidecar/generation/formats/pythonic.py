"""Llama 4 and small Llama 3.2: a list of Python calls, with tokens around it or without.

    [f(a=1, b="x"), g()]
    <|python_start|>[f(a=1, b="x"), g()]<|python_end|>

Without the token, calls are looked for only at the beginning, where the model puts them instead of an answer.
Source: the chat templates and model cards of Llama 3.2 and Llama 4.
"""

from __future__ import annotations

import re
from typing import ClassVar

from sidecar.generation.calls import CallParser
from sidecar.generation.json_scanner import PythonScanner
from sidecar.generation.source import Steps

_NO_ARGUMENTS = re.compile(r"[^)]*")
_LONGEST_UNREAD = 2_000
MARKERS = ("<|python_start|>", "<|python_end|>")


class PythonicParser(CallParser):
    """Reads text with such calls."""

    begins = ("<|python_start|>",)
    ends = ("<|python_end|>",)
    control: ClassVar[tuple[str, ...]] = MARKERS
    scanner = PythonScanner

    def read(self) -> Steps[None]:
        """Calls at the beginning, then text and marked calls in turn."""
        yield from self.source.space()
        self.hold()
        yield from self._list()
        while (yield from self.text()):
            yield from self._list()

    def _list(self) -> Steps[None]:
        yield from self.fence()
        if not (yield from self.source.literal("[")):
            self.give_up()
            return
        yield from self.python_calls()

    def python_calls(self) -> Steps[None]:
        """Read calls, one after another, and their end."""
        while (yield from self._call()) and (yield from self.another()):
            pass

    def _call(self) -> Steps[bool]:
        yield from self.source.space()
        name = yield from self.word()
        if not self.named(name) or not (yield from self.source.literal("(")):
            self.give_up()
            return False
        if not self.functions[name]:
            yield from self.source.word(_NO_ARGUMENTS, _LONGEST_UNREAD)
        return self.close((yield from self._arguments()))

    def _arguments(self) -> Steps[bool]:
        """Read the arguments and their end; tell whether they are whole. A broken one is dropped."""
        while True:
            yield from self.source.space()
            ended = bool((yield from self.source.literal(")")))
            if ended or not (yield from self._argument()):
                ended = ended or bool(self.sink.call_open and (yield from self.source.literal(")")))
                return self.end_members(ended)

    def _argument(self) -> Steps[bool]:
        """Read an argument and the comma after it; tell whether there may be another."""
        key = yield from self.word()
        yield from self.source.space()
        if not key or not (yield from self.source.literal("=")):
            return False
        self.key(key)
        yield from self.source.space()
        whole = yield from self.json.value(self.argument)
        yield from self.source.space()
        return whole and bool((yield from self.source.literal(",")))


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return "<|python_start|>" in template or "[func_name1(" in template
