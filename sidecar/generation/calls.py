"""What all tool-call formats share: how a call opens and closes, and what becomes of markup that is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sidecar.generation.call_object import CallObject
from sidecar.generation.coroutine import CoroutineParser
from sidecar.generation.json_scanner import JsonScanner
from sidecar.generation.source import Steps

_NAME = re.compile(r"[\w.-]*")

Functions = Mapping[str, Mapping[str, Any]]
"""The request's functions: the JSON Schema of the arguments by the function's name."""


class CallParser(CoroutineParser):
    """A parser that knows the functions that may be called.

    Markup is held from its first marker on. When a call opens it is dropped; when it turns out not to be a call of one
    of the functions, it becomes text.
    """

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        super().__init__()
        self.json = JsonScanner(self.source)

    def hold(self, marker: str = "") -> None:
        """Hold from here on; ``marker`` stands here."""
        self.source.hold()
        self.source.take(len(marker))

    def give_up(self) -> None:
        """What is held was no call: it is text."""
        self.sink.text(self.source.release())

    def open(self, name: str) -> None:
        """A call begins; its markup has done its work."""
        self.source.release()
        self.sink.open(name)

    def close(self, whole: bool) -> None:
        """The open call ends. Where its markup broke, what is held is text; where the text ended, it is markup."""
        self.sink.close(whole)
        if whole:
            self.source.release()
        elif self.source.ended:
            self.source.release()
            self.source.take_rest()
        else:
            self.give_up()

    def closing(self, *markers: str) -> Steps[str]:
        """Take space and the marker that ends the call's markup, if one comes, and tell it."""
        yield from self.source.space()
        marker = yield from self.source.literal(*markers)
        if not marker and self.source.ended:
            self.source.take_rest()
        return marker

    def word(self, pattern: re.Pattern[str] = _NAME) -> Steps[str]:
        """Take what matches ``pattern``; without one, what may be a function's name."""
        parts: list[str] = []
        yield from self.source.run(pattern, parts.append)
        return "".join(parts)

    def arguments(self, name: str) -> Steps[bool]:
        """Read the arguments of a call of ``name``, an object; tell whether they are whole."""
        if name not in self.functions or (yield from self.source.peek()) != "{":
            self.give_up()
            return False
        self.open(name)
        whole = yield from self.json.value(self.sink.arguments)
        self.close(whole)
        return whole

    def call(self, *, bare: bool = False) -> Steps[bool]:
        """Read an object with a call's name and arguments; tell whether a call came of it, and whole.

        ``bare`` text is less sure to be a call, and given up at its first member that no call has.
        """
        reading = CallObject(self, bare)
        yield from reading.read()
        if self.sink.call_open:
            self.close(reading.arguments_whole)
        else:
            self.give_up()
        return reading.arguments_whole

    def calls(self, *, bare: bool = False) -> Steps[None]:
        """Read what follows the ``[`` of a list of such objects, with its end."""
        while (yield from self.call(bare=bare)):
            if not (yield from self.separator(",")):
                yield from self.closing("]")
                return

    def separator(self, option: str) -> Steps[str]:
        """Take what may stand between two calls, and tell it; it is held, unless nothing follows."""
        yield from self.source.space()
        self.hold()
        separator = yield from self.source.literal(option)
        yield from self.source.space()
        if not (yield from self.source.peek()):
            self.source.release()
        return separator
