"""Collects the segments that a parser finds, and drops the white space that belongs to none of them.

White space around reasoning, before the first visible character, and between and after calls up to the next visible
character is layout of the generated markup.
"""

from __future__ import annotations

from collections.abc import Callable

from sidecar.generation.segments import ArgumentsDelta, CallClosed, CallOpened, ReasoningDelta, Segment, TextDelta

_Delta = Callable[[str], Segment]
_BETWEEN_MESSAGES = "\n\n"


class Sink:
    """Segments since the last :meth:`take`, with deltas of one kind in a row joined."""

    def __init__(self) -> None:
        self.call_open = False
        self._segments: list[Segment] = []
        self._delta: _Delta | None = None
        self._parts: list[str] = []
        self._blank = True
        self._space: list[str] = []

    def take(self) -> list[Segment]:
        """The segments that came since the last call of this method."""
        self._flush()
        segments, self._segments = self._segments, []
        return segments

    def text(self, text: str) -> None:
        """More visible text."""
        if self._blank:
            text = text.lstrip()
        if text:
            self._add(TextDelta, text)

    def reasoning(self, text: str) -> None:
        """More reasoning. White space is kept back until it is known not to be the last."""
        if self._blank:
            text = text.lstrip()
        visible = text.rstrip()
        if visible:
            self._space.append(visible)
            visible, self._space = "".join(self._space), [text[len(visible) :]]
            self._add(ReasoningDelta, visible)
        elif text:
            self._space.append(text)

    def next_message(self) -> None:
        """What comes is a message of its own: a blank line parts it from one of the same kind before it."""
        self._blank = True
        self._space = []

    def open(self, name: str) -> None:
        """A call begins."""
        self._flush()
        self._delta = None
        self._segments.append(CallOpened(name))
        self.call_open = True

    def arguments(self, json: str) -> None:
        """More arguments of the open call."""
        if json:
            self._add(ArgumentsDelta, json)

    def close(self, complete: bool) -> None:
        """The open call ends."""
        self._flush()
        self._delta = None
        self._segments.append(CallClosed(complete))
        self.call_open = False
        self.next_message()

    def extend(self, segments: list[Segment]) -> None:
        """Segments of another parser, as they are."""
        self._flush()
        self._segments += segments

    def _add(self, delta: _Delta, text: str) -> None:
        if delta is not self._delta:
            self._flush()
            self._delta = delta
        elif self._blank:
            text = _BETWEEN_MESSAGES + text
        self._blank = False
        self._parts.append(text)

    def _flush(self) -> None:
        if self._parts and self._delta:
            self._segments.append(self._delta("".join(self._parts)))
        self._parts = []
