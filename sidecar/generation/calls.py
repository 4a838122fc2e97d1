"""What all tool-call formats share: how a call opens and closes, and what becomes of markup that is not quite right.

The policy, which ``docs/models.md`` tells in full:

* Markup is held from its first marker on. A call opens with the first of its arguments, or with its end: until then
  it may be an example in prose, and where it is, all that was held is text.
* A call that opened ends as valid JSON. Only the token limit leaves one broken.
* Special tokens of the model are never text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from sidecar.generation.call_object import CallObject
from sidecar.generation.coroutine import CoroutineParser, markers_of
from sidecar.generation.json_scanner import JsonScanner, escaped
from sidecar.generation.source import Steps

_NAME = re.compile(r"[\w.-]*")
_LONGEST_NAME = 256
_LANGUAGE = re.compile(r"\w*")
_LONGEST_LANGUAGE = 20
_LEFT_OVER = re.compile(r"[\s}\]]*")
_BETWEEN = re.compile(r"[\s,;\]]*")
_FENCE = "```"
_LONGEST_UNREAD = 2_000

Functions = Mapping[str, Mapping[str, Any]]
"""The request's functions: the JSON Schema of the arguments by the function's name, empty where it takes none."""


class CallParser(CoroutineParser):
    """A parser that knows the functions that may be called. ``scanner`` reads their arguments."""

    scanner: ClassVar[type[JsonScanner]] = JsonScanner

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        super().__init__()
        self._name = ""
        self._key = ""
        self._marked = False
        self._unclosed = False
        self._fenced = False

    def _look_for_markers(self) -> None:
        super()._look_for_markers()
        self._closers = markers_of((*self.ends, *self.tokens))
        self._control = _any_of(self.tokens)
        self.json = self.scanner(self.source, self.tokens)

    # Between calls.

    def text(self) -> Steps[str]:
        """Pass on text up to a marker at which a call may begin, hold from that on, and tell it; empty at the end."""
        while marker := (yield from self.source.until(self._marks, self.sink.text)):
            if marker in self.begins:
                self.hold(marker)
                break
            if marker in self.tokens or self._unclosed:
                yield from self.skip(marker, self.sink.text)
                self._unclosed = self._unclosed and marker != self.ends[-1]
            else:
                self.sink.text(self.source.take(len(marker)))
        return marker

    def hold(self, marker: str = "") -> None:
        """Hold from here on; ``marker`` stands here."""
        self.source.hold()
        self.source.take(len(marker))
        self.json.repaired = False
        self._marked = bool(marker)
        self._name = ""
        self._fenced = False

    def markup(self) -> None:
        """What is held is markup, whatever follows; hold from here on."""
        self.source.release()
        self.hold()
        self._marked = True

    def give_up(self) -> None:
        """What is held was no call: it is text, or nothing where it is half a call that the token limit cut."""
        held = self.source.release()
        if self.source.cut and self._marked:
            self.source.take_rest()
            return
        for number, part in enumerate(self._control.split(held)):
            if number:
                self.drop(self.sink.text)
            self.sink.text(part)

    # Inside a call.

    def word(self, pattern: re.Pattern[str] = _NAME) -> Steps[str]:
        """Take what matches ``pattern``; without one, what may be a function's name."""
        return (yield from self.source.word(pattern, _LONGEST_NAME))

    def named(self, name: str) -> bool:
        """Tell whether ``name`` is a function's; what is read then are the arguments of a call of it."""
        self._name = name
        return name in self.functions

    def argument(self, json: str) -> None:
        """More arguments of the call that is being read. The first ones open it: its markup has done its work."""
        if self._key:
            json, self._key = self._key + json, ""
        if not self.sink.call_open:
            self.source.release()
            self.sink.open(self._name)
        self.sink.arguments(json)

    def key(self, key: str) -> None:
        """The next argument is the value of the member ``key``, which is passed on with it."""
        self._key = f'{", " if self.sink.call_open else "{"}"{escaped(key)}": '

    def end_members(self, ended: bool) -> bool:
        """The members end, by markup that says so if ``ended``; tell whether the arguments are whole."""
        if self.source.cut and not ended:
            if self._key:
                self.argument("")
            return False
        if not ended:
            self.json.repaired = True
        self._key = ""
        if self.sink.call_open or ended:
            self.argument("}" if self.sink.call_open else "{}")
        return self.sink.call_open

    def arguments(self, name: str) -> Steps[bool]:
        """Read the arguments of a call of ``name``, an object, fenced or not; tell whether a call came of it.

        Where the markup ends before them there are none.
        """
        if not self.named(name):
            self.give_up()
            return False
        yield from self.fence()
        if (yield from self.at_end()):
            self.argument("{}")
            return self.close(True)
        return self.close((yield from self.object()))

    def object(self) -> Steps[bool]:
        """Read the object of arguments; tell whether it is whole."""
        if not self.functions[self._name]:
            return (yield from self.nothing())
        if (yield from self.source.peek()) != "{":
            return False
        return (yield from self.json.value(self.argument))

    def nothing(self) -> Steps[bool]:
        """Read whatever is written as the arguments of a function that takes none, up to the markup's end."""
        whole = yield from self.json.value(str)
        if not whole and (self.ends or self.tokens) and not self.source.ended:
            whole = bool((yield from self.source.until(self._closers, str, _LONGEST_UNREAD)))
        if whole:
            self.argument("{}")
        elif self.source.cut:
            self.argument("{")
        return whole

    def close(self, whole: bool) -> bool:
        """The open call ends; where none is open there was none. Tell which."""
        if not self.sink.call_open:
            self.give_up()
            return False
        self.source.release()
        if not whole and self.source.cut:
            self.source.take_rest()
        self.sink.close(whole or not self.source.cut, repaired=not whole or self.json.repaired)
        self.json.repaired = False
        self._unclosed = bool(self.ends)
        return True

    def at_end(self) -> Steps[bool]:
        """Tell whether the markup ends here, after white space."""
        yield from self.source.space()
        if not (yield from self.source.peek()):
            return not self.source.cut
        return bool((yield from self.source.ahead(*self.ends, *self.tokens)))

    def closing(self) -> Steps[str]:
        """Take the markers that end the call's markup, and closers too many between them; tell the last marker."""
        last = ""
        ends = (*self.ends, _FENCE) if self._fenced else self.ends
        while True:
            yield from self.source.run(_LEFT_OVER, str)
            marker = yield from self.source.literal(*ends)
            if not marker:
                break
            last = marker if marker != _FENCE else last
            self._unclosed = self._unclosed and marker != self.ends[-1]
        if self.source.ended:
            self.source.take_rest()
        return last

    def fence(self) -> Steps[None]:
        """Take the beginning of a code fence, if one comes."""
        yield from self.source.space()
        if (yield from self.source.literal(_FENCE)):
            self._fenced = True
            yield from self.source.word(_LANGUAGE, _LONGEST_LANGUAGE)
            yield from self.source.space()

    # Calls that are JSON objects with a name and arguments.

    def call(self, *, bare: bool = False) -> Steps[bool]:
        """Read such an object; tell whether a call came of it.

        ``bare`` text is less sure to be a call, and given up at its first member that no call has.
        """
        reading = CallObject(self, bare)
        whole = yield from reading.read()
        return self.close(whole)

    def calls(self, *, bare: bool = False) -> Steps[None]:
        """Read calls: one object, several in a row, or a list of them, fenced or not, and their end."""
        yield from self.fence()
        if not (yield from self.source.ahead(*self.begins, *self.tokens)) and (yield from self.source.literal("[")):
            yield from self.source.space()
        while (yield from self.call(bare=bare)) and (yield from self.another()):
            pass

    def another(self) -> Steps[bool]:
        """Take what ends a call, or stands between two; tell whether the markup goes on. It is held from here."""
        if (yield from self.closing()):
            return False
        self.source.hold()
        yield from self.source.run(_BETWEEN, str)
        if not (yield from self.source.peek()) or (yield from self.source.ahead(*self.begins, *self.tokens)):
            self.source.release()
            return False
        return True


@lru_cache(maxsize=256)
def _any_of(markers: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, markers)) or "(?!)")
