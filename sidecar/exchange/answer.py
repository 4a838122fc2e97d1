"""Bytes of the upstream → pieces → segments → events: the answer of one exchange as it grows.

The same chain serves streamed and non-streamed requests, so that the final response always equals the streamed one.
"""

from __future__ import annotations

from collections.abc import Callable

from sidecar.backends.backend import FinishReason, Piece, Reader
from sidecar.generation.segments import ARGUMENTS, CALL, CALL_DONE, REASONING, TEXT, Kind, Parser, Segment
from sidecar.generation.stops import StopStrings
from sidecar.responses.errors import ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.json_text import Json
from sidecar.responses.marks import BEGUN, NOTHING, REASONING_AT
from sidecar.responses.open_calls import CALLS
from sidecar.responses.open_items import ItemStatus
from sidecar.responses.usage import Usage


class Answer:
    """The items of a response, its usage and its events.

    ``parallel_calls`` false ends the answer with its first complete call. ``begun`` tells that something has been
    generated, ``stopped`` that the answer is over although the upstream goes on, ``failure`` what the upstream has
    reported after what it had generated. ``mark`` is how far the events go: a token whose text is held back counts once
    some of its text, or of a later one's, stands in an event. ``next_number`` is that of the event after them.
    """

    def __init__(
        self,
        reader: Reader,
        writer: EventWriter,
        stops: StopStrings,
        parser: Parser,
        usage: Usage,
        *,
        parallel_calls: bool,
    ) -> None:
        self.begun = False
        self.stopped = False
        self.failure: ApiError | None = None
        self.mark = NOTHING
        self.next_number = writer.next_number
        self._reader = reader
        self._writer = writer
        self._stops = stops
        self._may_stop = stops.any
        self._parser = parser
        self._usage = usage
        self._parallel_calls = parallel_calls
        self._has_its_call = False
        # The kind of the open item, by the segment that grows it.
        self._open: Kind | None = None
        # What tells more of the open item.
        self._grow: Callable[[str], bytes] = writer.delta
        self._space: list[str] = []
        self._events: list[bytes] = []

    @property
    def text(self) -> str:
        """All visible text of a closed answer."""
        items = self._writer.output
        return "".join(item["content"][0]["text"] for item in items if item["type"] == "message")

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The name and the arguments of each call of a closed answer."""
        return self._writer.calls

    @property
    def repaired_calls(self) -> int:
        """How many of them were written not quite right."""
        return self._parser.repaired_calls

    def feed(self, data: bytes) -> bytes:
        """The events that the upstream's ``data`` adds; none when it completes nothing that shows.

        The first generated token brings the events that open the stream. What came before a failure is the client's.
        """
        self._events = events = list[bytes]()
        try:
            self._reader.feed(data, self._take)
        except ApiError as error:
            self.failure = error
        self.next_number = self._writer.next_number
        return events[0] if len(events) == 1 else b"".join(events)

    def _take(self, text: str, tokens: int) -> bool:
        """A piece of generated text, and how many tokens it is; whether the answer goes on after it."""
        if not self.begun and (text or tokens):
            self._events.append(self.begin())
        usage = self._usage
        usage.output_tokens += tokens
        parser = self._parser
        reasoned = parser.in_reasoning
        shown = False
        if self._may_stop:
            text = self._stops.feed(text)
        if text:
            kind = parser.plain(text)
            if kind is not None and kind is self._open:
                self._events.append(self._writer.delta(text))
                shown = True
            else:
                for segment in parser.feed(text) if kind is None else [(kind, text)]:
                    if written := self._write(segment):
                        self._events.append(written)
                        shown = True
        # The markers around the reasoning belong to it.
        if reasoned or parser.in_reasoning:
            usage.reasoning_tokens += tokens
        if shown:
            self.mark = BEGUN | usage.reasoning_tokens << REASONING_AT | usage.output_tokens
        self.stopped = self._has_its_call or self._stops.matched
        return not self.stopped

    def begin(self) -> bytes:
        """The events that open the stream."""
        self.begun = True
        self.mark = BEGUN
        return self._writer.start()

    def close(self, held_back: Piece, finish_reason: FinishReason) -> bytes:
        """The events that end the answer; ``held_back`` is the reader's last word."""
        usage = self._usage
        held_text, correction = held_back
        usage.output_tokens += correction
        # Where a whole text turns out to have fewer tokens than responses, so has the reasoning in it.
        usage.reasoning_tokens = min(usage.reasoning_tokens, usage.output_tokens)
        events = b"" if self.begun else self.begin()
        if self._has_its_call:
            return events
        text = "" if self._stops.matched else self._stops.feed(held_text) + self._stops.end()
        segments = [
            *(self._parser.feed(text) if text else ()),
            *self._parser.end(cut=finish_reason == "length"),
        ]
        events += b"".join([self._write(segment) for segment in segments])
        if self._needs_message(finish_reason):
            events += self._switch_to(TEXT)
        return events + self._close_item("incomplete" if finish_reason == "length" else "completed")

    def result(self, finish_reason: FinishReason) -> Json:
        """The fields of the final response that the answer decides."""
        incomplete = finish_reason == "length"
        return {
            "status": "incomplete" if incomplete else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if incomplete else None,
            "output": self._writer.output,
            "usage": self._usage.to_json(),
        }

    def _write(self, segment: Segment) -> bytes:
        if self._has_its_call:
            return b""
        kind, text = segment
        if kind is self._open:
            return self._grow(text)
        if kind is TEXT:
            return self._begin_text(text)
        if kind is REASONING:
            return self._switch_to(REASONING) + self._writer.delta(text)
        if kind is CALL:
            closing = self._close_item("completed")
            self._open = ARGUMENTS
            opening = self._writer.open_call(text)
            if self._writer.reads_arguments:
                self._grow = self._writer.arguments_delta
            return closing + opening
        self._has_its_call = kind is CALL_DONE and not self._parallel_calls
        return self._close_item("completed" if kind is CALL_DONE else "incomplete")

    def _begin_text(self, text: str) -> bytes:
        # White space before the first visible character opens no item; it comes with that character.
        self._space.append(text)
        if text.isspace():
            return b""
        text, self._space = "".join(self._space), []
        return self._switch_to(TEXT) + self._writer.delta(text)

    def _needs_message(self, finish_reason: FinishReason) -> bool:
        """Whether an empty message must be added: clients wait for one, unless the answer was cut before it."""
        shown = [item["type"] for item in self._writer.output]
        if self._open in (TEXT, ARGUMENTS) or "message" in shown or not CALLS.keys().isdisjoint(shown):
            return False
        return finish_reason == "stop" or not (shown or self._open)

    def _switch_to(self, kind: Kind) -> bytes:
        if self._open is kind:
            return b""
        closing = self._close_item("completed")
        self._open = kind
        return closing + (self._writer.open_message() if kind is TEXT else self._writer.open_reasoning())

    def _close_item(self, status: ItemStatus) -> bytes:
        if self._open is None:
            return b""
        self._open, self._grow = None, self._writer.delta
        return self._writer.close(status)
