"""A strict reader of event streams: it takes bytes in any split and tells where they are not as clients like them.

Lines end in LF, CRLF or CR, as the HTML standard's section on server-sent events allows. What the standard allows
beyond the form that OpenAI sends (several ``data:`` lines, ``id:``, ``retry:``) is read and reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from conformance.rules import Violation
from conformance.shapes import Json

_LINE_END = re.compile(rb"\r\n|\r|\n")
_SEPARATORS = re.compile("[\x85\u2028\u2029]")


class ReceivedEvent(NamedTuple):
    """One server-sent event: its type and its data, which holds the type too."""

    type: str
    data: Json


class SseReader:
    """Reads one stream. ``violations`` grows as it is fed.

    ``unreadable`` is set by an event whose data could not be read: what the events after it mean is then unknown.
    """

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.unreadable = False
        self._rest = b""
        self._after_cr = False
        self._fields: list[tuple[str, str]] = []
        self._in_comment = False
        self._events = 0

    @property
    def between_events(self) -> bool:
        """Whether the bytes so far end where an event or a comment ends."""
        return not (self._rest or self._fields or self._in_comment)

    def feed(self, data: bytes) -> Iterator[ReceivedEvent]:
        """The events that ``data`` completes; nothing is read but by iterating over them."""
        for line in self._lines(data):
            if line:
                self._take(line)
            elif (event := self._dispatch()) is not None:
                yield event

    def end(self) -> None:
        """The stream has ended."""
        if not self.between_events:
            self._found("sse-whole-end", "the stream ends inside an event")

    def _lines(self, data: bytes) -> list[bytes]:
        if not data:
            return []
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        *lines, self._rest = _LINE_END.split(self._rest + data)
        return lines

    def _take(self, line: bytes) -> None:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            self._found("sse-utf-8", "a line is not valid UTF-8")
            text = line.decode(errors="replace")
        if text.startswith(":"):
            if self._fields:
                self._found("sse-comment", "a comment stands inside an event")
            self._in_comment = True
            return
        if self._in_comment and not self._fields:
            self._found("sse-comment", "no blank line between a comment and an event")
        name, _, value = text.partition(":")
        self._fields.append((name, value.removeprefix(" ")))

    def _dispatch(self) -> ReceivedEvent | None:
        fields, self._fields, self._in_comment = self._fields, [], False
        if not fields:
            return None
        data = "\n".join(value for name, value in fields if name == "data")
        if data == "[DONE]":
            self._found("sse-done-marker", "the stream has a [DONE] marker")
            return None
        names = [name for name, _ in fields]
        if names != ["event", "data"]:
            self._found("sse-fields", f"an event has the lines {names!r:.80}")
        if "data" not in names:
            return None
        return self._read(data, dict(fields).get("event"))

    def _read(self, data: str, name: str | None) -> ReceivedEvent | None:
        if _SEPARATORS.search(data):
            self._found("sse-line-separators", "the data has a line separator that is not escaped")
        value = _parse(data)
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            self._found("sse-json", "the data is not a JSON object with a type")
            self.unreadable = True
            return None
        event = ReceivedEvent(value["type"], value)
        if name not in {None, event.type}:
            self._found("sse-event-name", f"the event is named {name!r:.80}, its data {event.type!r:.80}")
        self._events += 1
        return event

    def _found(self, rule: str, message: str) -> None:
        self.violations.append(Violation(rule, message, self._events))


def _parse(data: str) -> Any:
    """The JSON value of ``data``; ``None`` where it is not JSON."""
    try:
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
