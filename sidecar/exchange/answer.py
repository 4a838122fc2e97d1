"""Pieces → segments → events: the answer of one exchange as it grows.

The same chain serves streamed and non-streamed requests, so that the final response always equals the streamed one.
"""

from __future__ import annotations

from sidecar.output.stops import StopStrings
from sidecar.responses.events import EventWriter
from sidecar.responses.open_items import ItemStatus, Json
from sidecar.responses.usage import Usage
from sidecar.triton.contracts.contract import FinishReason, Piece


class Answer:
    """The items of a response, its usage and its events.

    ``stopped`` turns true when a stop string ended the answer although Triton goes on.
    """

    def __init__(self, writer: EventWriter, stops: StopStrings, usage: Usage) -> None:
        self._writer = writer
        self._stops = stops
        self._usage = usage
        self._leading_space: str | None = ""

    @property
    def stopped(self) -> bool:
        """Whether a stop string has ended the answer."""
        return self._stops.matched

    def feed(self, piece: Piece) -> bytes:
        """The events that ``piece`` adds; none when it completes no visible text."""
        self._usage.output_tokens += piece.tokens
        text = self._stops.feed(piece.text)
        return self._add_text(text) if text else b""

    def close(self, held_back: Piece, finish_reason: FinishReason) -> bytes:
        """The events that end the open item; ``held_back`` is the decoder's last word."""
        self._usage.output_tokens += held_back.tokens
        events = b""
        if not self.stopped:
            text = self._stops.feed(held_back.text) + self._stops.end()
            events = self._add_text(text) if text else b""
        if self._leading_space is not None:
            # Nothing visible was generated, and a response without an item breaks clients.
            self._leading_space = None
            events += self._writer.open_message()
        status: ItemStatus = "incomplete" if finish_reason == "length" else "completed"
        return events + self._writer.close(status)

    def result(self, finish_reason: FinishReason) -> Json:
        """The fields of the final response that the answer decides."""
        incomplete = finish_reason == "length"
        return {
            "status": "incomplete" if incomplete else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if incomplete else None,
            "output": self._writer.output,
            "usage": self._usage.to_json(),
        }

    def _add_text(self, text: str) -> bytes:
        if self._leading_space is None:
            return self._writer.delta(text)
        # White space before the first visible character opens no item; it comes with that character.
        self._leading_space += text
        if self._leading_space.isspace():
            return b""
        text, self._leading_space = self._leading_space, None
        return self._writer.open_message() + self._writer.delta(text)
