"""The Responses event stream: the one place that numbers events and writes them as server-sent events.

Grammar (OpenAI's streaming reference; the items' own events are in :mod:`sidecar.responses.open_items`)::

    stream   := created in_progress item* terminal
    terminal := completed | incomplete | [failed] error

Every event is one ``event:`` line, one ``data:`` line and a blank line. An :class:`EventWriter` returns the bytes of
whole events; joining and sending them is the caller's work.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from sidecar.responses.errors import ApiError
from sidecar.responses.ids import ResponseIds
from sidecar.responses.json_text import Json, json_bytes, json_string
from sidecar.responses.open_calls import CALLS, CallType, OpenCall
from sidecar.responses.open_items import (
    ItemStatus,
    OpenItem,
    OpenMessage,
    OpenReasoning,
    ReasoningForm,
    UnnumberedEvent,
)


class EventWriter:
    """Writes one response's events in order, numbers them and keeps the finished items.

    Items are strictly one after another. ``response`` holds the members of the response object that do not change while
    it runs; the writer adds ``status``, ``output`` and ``usage``. ``reasoning`` is how reasoning is shown,
    ``called_as`` has the tools by name whose calls are not those of functions. ``next_number`` is the number of the
    next event.
    """

    def __init__(
        self,
        ids: ResponseIds,
        response: Json,
        reasoning: ReasoningForm | None = None,
        called_as: Mapping[str, CallType] | None = None,
    ) -> None:
        self._ids = ids
        self._response = response
        self._reasoning = reasoning or ReasoningForm()
        self._called_as = called_as or {}
        self.calls: list[tuple[str, str]] = []
        """The name and the arguments of each call that has ended."""
        self.next_number = 0
        self._output: list[Json] = []
        self._open: OpenItem | None = None
        self._delta_heads: list[str] = []

    @property
    def output(self) -> list[Json]:
        """The items finished so far, in the order of their ``output_index``."""
        return self._output

    def cut_output(self) -> list[Json]:
        """The same where the stream ends here: an item that is open is ``incomplete``, if anything was told of it."""
        item = self._open
        return (
            self._output if item is None or item.told_whole else [*self._output, item.snapshot("incomplete", item.text)]
        )

    def start(self) -> bytes:
        """``response.created`` and ``response.in_progress``."""
        # Both hold the same response, which may have megabytes of tools: it is written once.
        response = json_bytes({**self._response, "status": "in_progress", "output": [], "usage": None})
        written = []
        for type_ in (b"response.created", b"response.in_progress"):
            data = b'{"type":"%b","sequence_number":%d,"response":%b}' % (type_, self.next_number, response)
            written.append(_event(type_, data))
            self.next_number += 1
        return b"".join(written)

    def open_message(self) -> bytes:
        """A message begins."""
        index = len(self._output)
        return self._open_item(OpenMessage(self._ids.item("message", index), index))

    def open_reasoning(self) -> bytes:
        """A reasoning item begins."""
        index = len(self._output)
        return self._open_item(OpenReasoning(self._ids.item("reasoning", index), index, self._reasoning))

    def open_call(self, name: str) -> bytes:
        """A call of the tool ``name`` begins."""
        index = len(self._output)
        call = CALLS[self._called_as.get(name, "function_call")]
        return self._open_item(call(self._ids.item(call.type, index), index, self._ids.call(index), name))

    def delta(self, text: str) -> bytes:
        """More text of the open item. This is the per-token path."""
        item = self._open
        assert item is not None, "a delta needs an open item"
        encoded = json_string(text)
        item.encoded += encoded.encode()[1:-1]
        events = ""
        for head in self._delta_heads:
            events += f'{head}{encoded},"sequence_number":{self.next_number}}}\n\n'
            self.next_number += 1
        return events.encode()

    @property
    def reads_arguments(self) -> bool:
        """Whether the open item is a call whose arguments are not told as they are."""
        return isinstance(self._open, OpenCall) and not self._open.told_as_written

    def arguments_delta(self, arguments: str) -> bytes:
        """What more ``arguments`` of such a call tell."""
        assert isinstance(self._open, OpenCall)
        told = self._open.read(arguments)
        return self.delta(told) if told else b""

    def close(self, status: ItemStatus) -> bytes:
        """The open item ends. One that is told whole and is not is left out."""
        item = self._open
        assert item is not None, "only an open item closes"
        last = b""
        if isinstance(item, OpenCall) and status == "completed" and (rest := item.rest()):
            last = self.delta(rest)
        self._open = None
        text = item.text
        if isinstance(item, OpenCall):
            self.calls.append((item.name, item.arguments(text)))
        if item.told_whole:
            if status != "completed":
                return b""
            last = self._events([_added(item, text)])
        snapshot = item.snapshot(status, text)
        self._output.append(snapshot)
        done = {"output_index": item.output_index, "item": snapshot}
        return last + self._events([*item.closing(text), ("response.output_item.done", done)])

    def finish(self, response: Json) -> bytes:
        """The event of a response that has ended; its name follows ``response["status"]``."""
        return self._events([(f"response.{response['status']}", {"response": response})])

    def error(self, error: ApiError, members: Json | None = None) -> bytes:
        """The terminal ``error`` event, flat as OpenAI documents it and nested as OpenAI sends it, at once.

        Clients read one or the other; no client takes either form for a success. ``members`` are the nested object's
        where they are more than OpenAI's four.
        """
        flat = {"code": error.code, "message": error.message, "param": error.param}
        return self._events([("error", {**flat, "error": members or error.fields()})])

    def _open_item(self, item: OpenItem) -> bytes:
        assert self._open is None, "items come one after another"
        self._open = item
        if item.told_whole:
            return b""
        self._delta_heads = [_delta_head(*event) for event in item.deltas()]
        return self._events([_added(item, ""), *item.opening()])

    def _events(self, events: list[UnnumberedEvent]) -> bytes:
        written = []
        for type_, members in events:
            data = {"type": type_, "sequence_number": self.next_number, **members}
            self.next_number += 1
            written.append(_event(type_.encode(), json_bytes(data)))
        return b"".join(written)


def _event(type_: bytes, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (type_, data)


def _added(item: OpenItem, text: str) -> UnnumberedEvent:
    return "response.output_item.added", {
        "output_index": item.output_index,
        "item": item.snapshot("in_progress", text),
    }


def _delta_head(type_: str, members: Json) -> str:
    """All of a delta event that stays the same, up to the delta itself: written once per item, not once per token."""
    same = json.dumps({"type": type_, **members}, separators=(",", ":"))
    return f'event: {type_}\ndata: {same[:-1]},"delta":'
