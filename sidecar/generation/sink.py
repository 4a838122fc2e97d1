"""Collects the segments that a parser finds, and drops the white space that belongs to none of them.

White space around reasoning, before the first visible character, and between and after calls up to the next visible
character is layout of the generated markup.
"""

from __future__ import annotations

from sidecar.generation.segments import ARGUMENTS, CALL, CALL_BROKEN, CALL_DONE, REASONING, TEXT, Kind, Segment
from sidecar.generation.source import Emit

_BETWEEN_MESSAGES = "\n\n"


class Sink:
    """Segments since the last :meth:`take`, with those of one kind in a row joined.

    ``last`` is the last visible text or reasoning that came. ``in_reasoning`` is whether the text that was read last
    stands in the reasoning, between its markers. ``repaired_calls`` counts complete calls that were
    written otherwise.
    """

    def __init__(self) -> None:
        self.call_open = False
        self.repaired_calls = 0
        self.in_reasoning = False
        self.blank = True
        self.last = ""
        self._segments: list[Segment] = []
        self._kind: Kind | None = None
        self._parts: list[str] = []
        self._space: list[str] = []

    def take(self) -> list[Segment]:
        """The segments that came since the last call of this method."""
        if self._parts:
            assert self._kind is not None
            self._segments.append((self._kind, "".join(self._parts)))
            self._parts = []
        segments, self._segments = self._segments, []
        return segments

    def passes(self, emit: Emit) -> Kind | None:
        """The kind of segment that any text becomes as it is where ``emit`` takes it now, if it does."""
        if self.blank:
            return None
        if self._kind is TEXT and emit == self.text:
            return TEXT
        return REASONING if self._kind is REASONING and not self._space and emit == self.reasoning else None

    def text(self, text: str) -> None:
        """More visible text."""
        if self.blank or self._kind is not TEXT:
            text = self._begin(TEXT, text)
        if text:
            self._parts.append(text)
            self.last = text

    def reasoning(self, text: str) -> None:
        """More reasoning. White space is kept back until it is known not to be the last."""
        if self.blank:
            text = text.lstrip()
        visible = text.rstrip()
        if visible:
            self.last = text
            after = text[len(visible) :]
            if self._space:
                visible = "".join([*self._space, visible])
            self._space = [after] if after else []
            if self.blank or self._kind is not REASONING:
                visible = self._begin(REASONING, visible)
            self._parts.append(visible)
        elif text:
            self._space.append(text)

    def next_message(self) -> None:
        """What comes is a message of its own: a blank line parts it from one of the same kind before it."""
        self.blank = True
        self._space = []

    def open(self, name: str) -> None:
        """A call begins."""
        self._turn(ARGUMENTS)
        self._segments.append((CALL, name))
        self.call_open = True

    def arguments(self, json: str) -> None:
        """More arguments of the open call."""
        if json:
            self._parts.append(json)

    def close(self, complete: bool, *, repaired: bool = False) -> None:
        """The open call ends; to be ``complete`` it may have needed to be ``repaired``."""
        self._turn(None)
        self.repaired_calls += complete and repaired
        self._segments.append((CALL_DONE if complete else CALL_BROKEN, ""))
        self.call_open = False
        self.next_message()

    def _begin(self, kind: Kind, text: str) -> str:
        """The first text of another kind or message, as it is to stand."""
        if self.blank:
            text = text.lstrip()
        if not text:
            return ""
        if self._kind is kind and self.blank:
            text = _BETWEEN_MESSAGES + text
        self._turn(kind)
        self.blank = False
        return text

    def _turn(self, kind: Kind | None) -> None:
        if self._parts and self._kind and kind is not self._kind:
            self._segments.append((self._kind, "".join(self._parts)))
            self._parts = []
        self._kind = kind
