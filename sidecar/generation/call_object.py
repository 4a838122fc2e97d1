"""A call written as a JSON object with the members ``name`` and ``arguments``, in any order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sidecar.generation.source import Steps

if TYPE_CHECKING:
    from sidecar.generation.calls import CallParser

_ARGUMENTS = ("arguments", "parameters")
_OF_A_CALL = ("id", "type")
"""Members that models write beside name and arguments, and that say nothing more."""


class CallObject:
    """Reads one such object for a parser, opening the call as soon as it is known to be one.

    It is when the name is one of the parser's functions and the arguments have begun as an object. Arguments before the
    name, and arguments that are written as a string which holds the object, wait until they are complete.
    """

    def __init__(self, parser: CallParser, bare: bool) -> None:
        self.arguments_whole = False
        self._parser = parser
        self._source = parser.source
        self._bare = bare
        self._name: str | None = None
        self._arguments: str | None = None

    def read(self) -> Steps[bool]:
        """Read the object; tell whether it is whole. A call that it opens stays open."""
        if not (yield from self._source.literal("{")):
            return False
        yield from self._source.space()
        delimiter = yield from self._source.literal("}")
        while delimiter != "}":
            if not (yield from self._member()):
                return False
            yield from self._source.space()
            delimiter = yield from self._source.literal(",", "}")
            if not delimiter:
                return False
            yield from self._source.space()
        return self._complete()

    def _member(self) -> Steps[bool]:
        key = yield from self._parser.json.text()
        if key is None:
            return False
        yield from self._source.space()
        if not (yield from self._source.literal(":")):
            return False
        yield from self._source.space()
        if key == "name" and self._name is None:
            return (yield from self._read_name())
        if key in _ARGUMENTS and self._arguments is None and not self.arguments_whole:
            return (yield from self._read_arguments())
        if self._bare and key not in _OF_A_CALL and not self._parser.sink.call_open:
            return False
        return (yield from self._parser.json.value(str))

    def _read_name(self) -> Steps[bool]:
        name = yield from self._parser.json.text()
        if name is None or name not in self._parser.functions:
            return False
        self._name = name
        if self._arguments is not None:
            self._open(name, self._arguments)
        return True

    def _read_arguments(self) -> Steps[bool]:
        if self._name is not None and (yield from self._source.peek()) == "{":
            self._parser.open(self._name)
            self.arguments_whole = yield from self._parser.json.value(self._parser.sink.arguments)
            return self.arguments_whole
        parts: list[str] = []
        whole = yield from self._parser.json.value(parts.append)
        self._arguments = _as_object("".join(parts)) if whole else None
        if self._arguments is not None and self._name is not None:
            self._open(self._name, self._arguments)
        return self._arguments is not None

    def _open(self, name: str, arguments: str) -> None:
        self._parser.open(name)
        self._parser.sink.arguments(arguments)
        self.arguments_whole = True

    def _complete(self) -> bool:
        if self._name is not None and not self.arguments_whole:
            self._open(self._name, "{}")
        return self.arguments_whole


def _as_object(arguments: str) -> str | None:
    """The object that ``arguments``, a JSON value, stands for; ``None`` where for none."""
    if arguments.startswith("{"):
        return arguments
    if arguments == "null":
        return "{}"
    if not arguments.startswith('"'):
        return None
    text = str(json.loads(arguments)).strip() or "{}"
    try:
        return text if isinstance(json.loads(text, parse_constant=_refuse), dict) else None
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
