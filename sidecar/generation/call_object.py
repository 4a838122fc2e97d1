"""A call written as a JSON object with the members ``name`` and ``arguments``, in any order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sidecar.generation.json_scanner import whole_value
from sidecar.generation.source import Steps

if TYPE_CHECKING:
    from sidecar.generation.calls import CallParser

_NAMES = ("name", "tool_name")
_ARGUMENTS = ("arguments", "parameters")
_OF_A_CALL = ("id", "type", "tool_call_id")
"""Members that models write beside name and arguments, and that say nothing more."""


class CallObject:
    """Reads one such object for a parser, which opens the call with its first argument.

    Arguments before the name, and arguments that are written as a string which holds the object, wait until they are
    complete. An object that ends without arguments is a call without any.
    """

    def __init__(self, parser: CallParser, bare: bool) -> None:
        self._parser = parser
        self._source = parser.source
        self._bare = bare
        self._name: str | None = None
        self._arguments: str | None = None
        self._begun = False

    def read(self) -> Steps[bool]:
        """Read the object; tell whether its arguments are whole."""
        if not (yield from self._source.literal("{")):
            return False
        if (yield from self._members()) and self._name is not None and not self._begun:
            self._parser.argument("{}")
            return True
        return self._arguments is not None

    def _members(self) -> Steps[bool]:
        """Read the members; tell whether the object ends, or the markup without the object's closer."""
        yield from self._source.space()
        delimiter = yield from self._source.literal("}")
        while delimiter != "}":
            if not (yield from self._member()):
                return False
            yield from self._source.space()
            delimiter = yield from self._source.literal(",", "}")
            if not delimiter:
                self._parser.json.repaired = True
                return (yield from self._parser.at_end())
            yield from self._source.space()
            delimiter = delimiter if delimiter == "}" else (yield from self._source.literal("}"))
        return True

    def _member(self) -> Steps[bool]:
        key = yield from self._parser.json.text()
        if key is None:
            return False
        yield from self._source.space()
        if not (yield from self._source.literal(":")):
            return False
        yield from self._source.space()
        if key in _NAMES and self._name is None:
            return (yield from self._read_name())
        if key in _ARGUMENTS and not self._begun:
            self._begun = True
            return (yield from self._read_arguments())
        if self._bare and key not in _OF_A_CALL and not self._parser.sink.call_open:
            return False
        return (yield from self._parser.json.value(str))

    def _read_name(self) -> Steps[bool]:
        name = yield from self._parser.json.text()
        if name is None or not self._parser.named(name):
            return False
        self._name = name
        if self._arguments is not None:
            self._parser.argument(self._arguments if self._parser.functions[name] else "{}")
        return True

    def _read_arguments(self) -> Steps[bool]:
        if self._name is not None and (
            not self._parser.functions[self._name] or (yield from self._source.peek()) == "{"
        ):
            whole = yield from self._parser.object()
            self._arguments = "" if whole else None
            return whole
        parts: list[str] = []
        whole = yield from self._parser.json.value(parts.append)
        self._arguments = _as_object("".join(parts)) if whole else None
        if self._arguments is not None and self._name is not None:
            self._parser.argument(self._arguments)
        return self._arguments is not None


def _as_object(arguments: str) -> str | None:
    """The object that ``arguments``, a JSON value, stands for; ``None`` where for none."""
    if arguments.startswith('"'):
        arguments = whole_value(str(json.loads(arguments)).strip() or "{}") or ""
    if arguments == "null":
        return "{}"
    return arguments if arguments.startswith("{") else None
