"""Reads JSON values off a source as they come, repairs what models get wrong, and passes on valid JSON at once.

Grammar: RFC 8259 and Python's literals, which models mix. Repaired are:

* in strings: control characters, single quotes, and backslashes before what is no escape, which stand for themselves;
* commas after the last element, tuples, closers that are left out before an outer one or the end;
* ``True``, ``False``, ``None``; ``NaN`` and infinities, which JSON has no word for, become ``null``;
* numbers such as ``.5``, ``5.``, ``+1``, ``1_000``.

A key and the containers that begin are passed on with the first of what they hold. So where a value breaks, what was
passed on can always be closed: the broken member is dropped, the containers around it are ended.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from json.encoder import encode_basestring
from typing import ClassVar

from sidecar.generation.markers import Markers
from sidecar.generation.source import Emit, Source, Steps

_SPACE = re.compile(r"[ \t\r\n]*")
_WORD = re.compile(r"[-+.\w]*", re.ASCII)
_LONGEST_WORD = 400
"""No number that a model means has more digits."""
_LEFT_OUT = 8
"""More closers in a row than these are not left out."""
_NUMBER = re.compile(r"([-+]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d+))?", re.ASCII)
_CONSTANTS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"} | {
    sign + word: "null" for sign in ("", "-", "+") for word in ("NaN", "nan", "Infinity", "inf")
}
_OF_PYTHON = ("True", "False", "None")
_ENDS = {"{": "}", "[": "]", "(": ")"}
_JSON_ENDS = {"}": "}", "]": "]", ")": "]"}


class JsonScanner:
    """Reads values; each reading stops at the first character that breaks it, and leaves that where it is.

    ``walls`` are markers that end everything, inside strings too. The class variables hold what another notation of the
    same values may write differently; ``native`` is whether its own are single quotes, tuples and Python's constants.
    """

    native: ClassVar[bool] = False
    escape: ClassVar[re.Pattern[str]] = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
    escape_begun: ClassVar[re.Pattern[str]] = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")

    def __init__(self, source: Source, walls: tuple[str, ...] = ()) -> None:
        self._source = source
        self._strings = _strings_within(walls)
        self._like_containers = tuple(wall for wall in walls if wall[0] in _ENDS)
        self._ends: list[str] = []
        self._closable = 0
        self._pending: list[str] = []
        self.repaired = False
        """Whether something was repaired; stays until it is taken back."""

    def value(self, emit: Emit) -> Steps[bool]:
        """Read one value, pass it on, and tell whether it is whole.

        Where it is not, nothing was passed on, or what was is closed; where the token limit cut it, neither.
        """
        self._ends, self._closable, self._pending = [], 0, []
        whole = yield from self._value(emit)
        if self._source.cut and not whole:
            self._source.take_rest()
            if self._pending:
                emit("".join(self._pending))
        elif not whole and self._closable:
            self.repaired = True
            emit("".join(_JSON_ENDS[end] for end in reversed(self._ends[: self._closable])))
        return whole

    def text(self) -> Steps[str | None]:
        """Read a string and tell what it says; ``None`` where it is none or not whole."""
        string = yield from self._whole_string()
        return str(json.loads(string)) if string else None

    def unescaped(self, escape: str) -> str:
        """The JSON of an escape in a string."""
        return escape

    def _value(self, emit: Emit) -> Steps[bool]:
        ends, pending, source = self._ends, self._pending, self._source
        while True:
            character = yield from source.peek()
            if self._like_containers and (yield from source.ahead(*self._like_containers)):
                return False
            if character in _ENDS:
                if character == "(" and not self.native:
                    self.repaired = True
                ends.append(_ENDS[source.take(1)])
                pending.append("{" if character == "{" else "[")
                yield from source.run(_SPACE, pending.append)
                character = yield from source.peek()
                if character != ends[-1]:
                    if ends[-1] == "}" and not (yield from self._key()):
                        return False
                    continue
            elif not (yield from self._scalar(character, emit)):
                return False
            if not (yield from self._after_value(emit)):
                return not ends

    def _after_value(self, emit: Emit) -> Steps[bool]:
        """Read closers and a comma; tell whether a value follows. Where none does and no end is left, all is whole."""
        ends, pending, source = self._ends, self._pending, self._source
        while ends:
            yield from source.run(_SPACE, pending.append)
            character = yield from source.peek()
            if character == ",":
                comma = len(pending)
                pending.append(source.take(1))
                yield from source.run(_SPACE, pending.append)
                character = yield from source.peek()
                if not character or character not in ends[-_LEFT_OUT:]:
                    return ends[-1] == "]" or ends[-1] == ")" or (yield from self._key())
                if not self.native:
                    self.repaired = True
                del pending[comma:]
            if not character or character not in ends[-_LEFT_OUT:]:
                return False
            source.take(1)
            while True:
                end = ends.pop()
                self._pass_on(_JSON_ENDS[end], emit)
                if end == character:
                    break
                self.repaired = True
        return False

    def _pass_on(self, text: str, emit: Emit) -> None:
        """Pass on what was held back, and ``text`` of a value."""
        if self._pending:
            text = "".join(self._pending) + text
            self._pending.clear()
        self._closable = len(self._ends)
        emit(text)

    def _key(self) -> Steps[bool]:
        """A member's key, the colon, and the space around it."""
        source, pending = self._source, self._pending
        key = yield from self._whole_string()
        if not key:
            return False
        pending.append(key)
        yield from source.run(_SPACE, pending.append)
        if not (yield from source.literal(":")):
            return False
        pending.append(":")
        yield from source.run(_SPACE, pending.append)
        return True

    def _scalar(self, character: str, emit: Emit) -> Steps[bool]:
        if character in self._strings:
            self._pass_on('"', emit)
            self._source.take(1)
            return (yield from self._string(character, emit))
        word = yield from self._source.next_word(_WORD, _LONGEST_WORD)
        value = _json_of(word) if len(word) < _LONGEST_WORD else ""
        if value:
            self._source.take(len(word))
            if value != word and not (self.native and word in _OF_PYTHON):
                self.repaired = True
        if value and not self._source.cut:
            self._pass_on(value, emit)
        elif value == word and value[-1:].isdigit():
            # The cut may have taken digits; these are the beginning of the number.
            self._pending.append(value)
        return bool(value) and not self._source.cut

    def _whole_string(self) -> Steps[str]:
        """Read a string and tell its JSON; empty where it is none or not whole."""
        parts = ['"']
        quote = yield from self._source.literal(*self._strings)
        whole = quote and (yield from self._string(quote, parts.append))
        return "".join(parts) if whole else ""

    def _string(self, quote: str, emit: Emit) -> Steps[bool]:
        """Read a string after its opening quote, pass it on with its closing one, and tell whether that came."""
        source, stops = self._source, self._strings[quote]
        if quote == "'" and not self.native:
            self.repaired = True
        while True:
            stop = yield from source.until(stops, emit)
            if stop == quote:
                source.take(1)
                emit('"')
                return True
            if stop == "\\":
                yield from self._escape(quote, emit)
            elif len(stop) == 1:
                if stop != '"':
                    self.repaired = True
                emit(encode_basestring(source.take(1))[1:-1])
            else:
                if not source.cut:
                    emit('"')
                return False

    def _escape(self, quote: str, emit: Emit) -> Steps[None]:
        source = self._source
        if quote == "'" and (yield from source.literal("\\'")):
            emit("'")
            return
        escape = yield from source.token(self.escape, self.escape_begun)
        if escape:
            emit(self.unescaped(escape))
        elif source.cut:
            source.take_rest()
        else:
            if not self.native:
                self.repaired = True
            source.take(1)
            emit("\\\\")


class PythonScanner(JsonScanner):
    """Reads the same with Python's escapes; an unknown one stands for itself there too."""

    native = True
    escape: ClassVar[re.Pattern[str]] = re.compile(
        r"""\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\\'"abfnrtv\n])"""
    )
    escape_begun: ClassVar[re.Pattern[str]] = re.compile(r"\\(?:x[0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?")
    _escapes: ClassVar[dict[str, str]] = {
        **{"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"},
        "\n": "",
    }

    def unescaped(self, escape: str) -> str:
        """The JSON of the character."""
        kind = escape[1]
        if kind in "xuU":
            code = int(escape[2:], 16)
            return json.dumps(chr(code) if code < 0x110000 else escape)[1:-1]
        return escaped(self._escapes.get(kind, kind))


@lru_cache(maxsize=256)
def _strings_within(walls: tuple[str, ...]) -> dict[str, Markers]:
    """What is looked for in strings, by their quote: its end, and markers that end everything."""
    return {
        '"': Markers(*walls, characters=r'"\\\x00-\x1f'),
        "'": Markers(*walls, characters=r"""'"\\\x00-\x1f"""),
    }


def whole_value(text: str) -> str | None:
    """The JSON of ``text`` where that is one value, needing repair or not; else ``None``."""
    parts: list[str] = []
    source = Source()
    source.feed(text)
    source.end()
    whole = _run(_alone(source, parts))
    return "".join(parts) if whole else None


def escaped(text: str) -> str:
    """``text`` as it stands in a JSON string, without the quotes."""
    return str(encode_basestring(text)[1:-1])


def _alone(source: Source, parts: list[str]) -> Steps[bool]:
    yield from source.space()
    whole = yield from JsonScanner(source).value(parts.append)
    yield from source.space()
    return whole and not source.take_rest()


def _run(steps: Steps[bool]) -> bool:
    """Run a reading of a source that has ended."""
    try:
        next(steps)
    except StopIteration as stop:
        return bool(stop.value)
    raise AssertionError("a reading waits after the end")


def _json_of(word: str) -> str:
    """The JSON of a number or a constant; empty where it is none."""
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    digits = word if "_" not in word else re.sub(r"(?<=\d)_(?=\d)", "", word)
    number = _NUMBER.fullmatch(digits)
    if not number:
        return ""
    sign, whole, fraction, exponent = number.groups()
    if len(whole) > 1 and whole[0] == "0":
        return ""
    value = ("-" if sign == "-" else "") + (whole or "0")
    if fraction is not None:
        value += "." + (fraction or "0")
    if exponent is not None:
        value += digits[-len(exponent) - 1] + exponent
    return value
