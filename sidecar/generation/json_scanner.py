"""Reads JSON values off a source as they come: checked character by character, passed on at once.

Grammar: RFC 8259, with one leniency. Models put line breaks and tabs into strings as they are; these are escaped on the
way, so that what is passed on is valid JSON. What is passed on is at any time the beginning of a valid value.
"""

from __future__ import annotations

import json
import re
from typing import ClassVar

from sidecar.generation.source import Emit, Source, Steps

_SPACE = re.compile(r"[ \t\r\n]*")
_DIGITS = re.compile(r"[0-9]*")
_ENDS = {"{": "}", "[": "]"}


class JsonScanner:
    """Reads values; each reading stops at the first character that breaks it, and leaves that where it is.

    The class variables hold what another notation of the same values may write differently.
    """

    strings: ClassVar[dict[str, re.Pattern[str]]] = {
        '"': re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+')
    }
    """The quotes of strings, and what may stand between them that is JSON as it is."""
    escape: ClassVar[re.Pattern[str]] = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
    escape_begun: ClassVar[re.Pattern[str]] = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
    constants: ClassVar[dict[str, str]] = {constant: constant for constant in ("true", "false", "null")}
    """The constants as they are written, with their JSON."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def value(self, emit: Emit) -> Steps[bool]:
        """Read one value, pass it on, and tell whether it is whole."""
        whole = yield from self._value(emit)
        if not whole and self._source.ended:
            # The end came inside an escape or a constant.
            emit(self.cut(self._source.take_rest()))
        return whole

    def string(self, emit: Emit) -> Steps[bool]:
        """Read a string with its quotes, pass it on, and tell whether it is whole."""
        quote = yield from self._source.literal(*self.strings)
        if not quote:
            return False
        emit('"')
        while True:
            yield from self._source.run(self.strings[quote], emit)
            character = yield from self._source.peek()
            if character == quote:
                emit(self._source.take(1) and '"')
                return True
            if character == "\\":
                escape = yield from self._source.token(self.escape, self.escape_begun)
                if not escape:
                    return False
                emit(self.unescaped(escape))
            elif character:
                emit(escaped(self._source.take(1)))
            else:
                return False

    def text(self) -> Steps[str | None]:
        """Read a string and tell what it says; ``None`` where it is none or not whole."""
        parts: list[str] = []
        whole = yield from self.string(parts.append)
        return str(json.loads("".join(parts))) if whole else None

    def unescaped(self, escape: str) -> str:
        """The JSON of an escape in a string."""
        return escape

    def cut(self, rest: str) -> str:
        """The JSON of an escape or a constant that the end of the text cuts."""
        return rest

    def _value(self, emit: Emit) -> Steps[bool]:
        ends: list[str] = []
        while True:
            container = yield from self._one_of("{[", emit)
            if container:
                ends.append(_ENDS[container])
                yield from self._source.run(_SPACE, emit)
                if not (yield from self._one_of(ends[-1], emit)):
                    if container == "{" and not (yield from self._key(emit)):
                        return False
                    continue
                ends.pop()
            elif not (yield from self._scalar(emit)):
                return False
            while ends:
                yield from self._source.run(_SPACE, emit)
                if not (yield from self._one_of(ends[-1], emit)):
                    break
                ends.pop()
            if not ends:
                return True
            if not (yield from self._one_of(",", emit)):
                return False
            yield from self._source.run(_SPACE, emit)
            if ends[-1] == "}" and not (yield from self._key(emit)):
                return False

    def _key(self, emit: Emit) -> Steps[bool]:
        """A member's key, the colon, and the space around it."""
        if not (yield from self.string(emit)):
            return False
        yield from self._source.run(_SPACE, emit)
        if not (yield from self._one_of(":", emit)):
            return False
        yield from self._source.run(_SPACE, emit)
        return True

    def _scalar(self, emit: Emit) -> Steps[bool]:
        character = yield from self._source.peek()
        if character in self.strings:
            return (yield from self.string(emit))
        constant = yield from self._source.literal(*self.constants)
        if constant:
            emit(self.constants[constant])
            return True
        return (yield from self._number(emit))

    def _number(self, emit: Emit) -> Steps[bool]:
        yield from self._one_of("-", emit)
        if not (yield from self._one_of("0", emit)) and not (yield from self._digits(emit)):
            return False
        if (yield from self._one_of(".", emit)) and not (yield from self._digits(emit)):
            return False
        if (yield from self._one_of("eE", emit)):
            yield from self._one_of("+-", emit)
            return (yield from self._digits(emit))
        return True

    def _digits(self, emit: Emit) -> Steps[bool]:
        if not (yield from self._one_of("0123456789", emit)):
            return False
        yield from self._source.run(_DIGITS, emit)
        return True

    def _one_of(self, characters: str, emit: Emit) -> Steps[str]:
        """Pass on the next character if it is one of these, and tell it; empty where it is not."""
        character = yield from self._source.peek()
        if not character or character not in characters:
            return ""
        emit(self._source.take(1))
        return character


def escaped(text: str) -> str:
    """``text`` as it stands in a JSON string, without the quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
