"""Calls as a tag with a tag for each parameter around its bare value, which becomes JSON as the schema asks.

A parameter that may only be a string is passed on as it comes; others when they are complete. Models leave out any of
the tags but a call's and a parameter's first ones, and at times write all arguments, or the whole call, as one JSON
object. They also write about tags in values: a tag ends a value where it begins a line, or where markup follows it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import ClassVar

from sidecar.generation.argument_types import json_of, types_of
from sidecar.generation.calls import CallParser, Functions
from sidecar.generation.coroutine import markers_of
from sidecar.generation.json_scanner import escaped
from sidecar.generation.source import Emit, Steps

_KEY = re.compile(r'[^<>"\n]*')
_SPACE = re.compile(r"\s*")
_ATTRIBUTES = re.compile(r"[^<>\n]*")
_IS_STRING = re.compile(r'\b(?:string="true"|type="string")')
_STRING = frozenset(("string",))


class TaggedParser(CallParser):
    """Reads text with such calls.

    ``call_tag`` and ``parameter_tag`` are opening tags up to the name, ``sign`` is what ends one. Its attribute
    ``string="true"`` or ``type="string"`` tells that a value is a string, whatever the schema says. ``before`` and
    ``after`` stand around calls, once for all or around each. ``frame`` stands around a value, and is no part of it.
    """

    call_tag: ClassVar[str]
    call_end: ClassVar[str]
    parameter_tag: ClassVar[str]
    parameter_end: ClassVar[str]
    sign: ClassVar[str] = ">"
    before: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[tuple[str, ...]] = ()
    frame: ClassVar[tuple[str, str]] = ("", "")

    def __init_subclass__(cls) -> None:
        if "call_tag" in cls.__dict__:
            cls.begins = (*(marker for marker in cls.before if marker.startswith("<")), cls.call_tag)
            cls.ends = (cls.parameter_end, cls.call_end, *cls.after)

    def __init__(self, functions: Functions) -> None:
        super().__init__(functions)
        self._types = cache(lambda function, parameter: types_of(functions[function], parameter))

    def _look_for_markers(self) -> None:
        super()._look_for_markers()
        lines = tuple("\n" + tag for tag in (self.parameter_tag, self.call_end, *self.after, *self.begins))
        self._certain_ends = (*lines, "\n" + self.parameter_end, *self.tokens)
        self._value_end = markers_of((self.frame[1] + self.parameter_end, *self.ends, *lines, *self.tokens))

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while marker := (yield from self.text()):
            while marker and marker != self.call_tag:
                yield from self.source.space()
                marker = yield from self.source.literal(*self.before, self.call_tag)
            if (yield from self._begins_object()):
                yield from self.calls()
                continue
            name = (yield from self.word()) if marker else ""
            if not self.named(name) or not (yield from self.opened()):
                self.give_up()
            elif self.close((yield from self._parameters(name))):
                yield from self.closing()

    def opened(self) -> Steps[bool]:
        """Read the rest of a call's opening tag after the name; tell whether it is one."""
        attributes = yield from self.word(_ATTRIBUTES)
        if not (yield from self.source.literal(self.sign)):
            return False
        if attributes.endswith("/"):
            self.argument("{}")
        return True

    def parameter(self) -> Steps[tuple[str, bool] | None]:
        """Read the rest of a parameter's opening tag; tell its name, and whether the tag calls the value a string.

        ``None`` where it is none.
        """
        name = yield from self.word(_KEY)
        attributes = yield from self.word(_ATTRIBUTES)
        if not name or not (yield from self.source.literal(self.sign)):
            return None
        return name, _IS_STRING.search(attributes) is not None

    def _parameters(self, name: str) -> Steps[bool]:
        """Read the parameters; tell whether the arguments are whole."""
        if self.sink.call_open:
            return True
        if (yield from self._begins_object()):
            return (yield from self.object())
        tag = yield from self.source.literal(self.parameter_tag)
        while tag == self.parameter_tag:
            parameter = yield from self.parameter()
            if parameter is None:
                return self.end_members(False)
            self.key(parameter[0])
            tag = yield from self._value(_STRING if parameter[1] else self._types(name, parameter[0]))
            if tag == self.parameter_end:
                yield from self.source.space()
                tag = yield from self.source.literal(self.parameter_tag)
        if tag:
            return self.end_members(True)
        if not self.functions[name] and not (yield from self.at_end()):
            return (yield from self.nothing())
        return self.end_members((yield from self.at_end()) or bool((yield from self.source.ahead(*self.begins))))

    def _value(self, types: frozenset[str]) -> Steps[str]:
        """Read a parameter's value and the tag that ends it; tell the tag."""
        yield from self.source.literal(self.frame[0])
        parts: list[str] = []
        emit = parts.append
        if types == _STRING:
            self.argument('"')
            emit = self._string
        while end := (yield from self.source.until(self._value_end, emit)):
            if end in self._certain_ends:
                tag = end.removeprefix("\n")
                # What is no tag of this call is left where it is.
                own = tag == self.parameter_tag or tag in self.ends
                self.source.take(len(end) if own else len(end) - len(tag))
                break
            taken = [self.source.take(len(end))]
            if (yield from self._markup_follows(taken.append)):
                break
            emit("".join(taken))
        if end or not self.source.cut:
            self.argument('"' if types == _STRING else json_of("".join(parts), types))
        return next((tag for tag in (self.parameter_tag, *self.ends) if end.endswith(tag)), end)

    def _markup_follows(self, emit: Emit) -> Steps[bool]:
        """Pass on white space, and tell whether markup follows it, or nothing."""
        yield from self.source.run(_SPACE, emit)
        if not (yield from self.source.peek()):
            return True
        return bool((yield from self.source.ahead(self.parameter_tag, *self.ends, *self.begins, *self.tokens)))

    def _begins_object(self) -> Steps[bool]:
        yield from self.source.space()
        return (yield from self.source.peek()) in ("{", "[")

    def _string(self, text: str) -> None:
        self.sink.arguments(escaped(text))
