"""What a generated text is made of: reasoning, visible text and function calls, in the order of their generation.

A parser turns text, split anywhere, into segments. Its rules:

* Any split of the text gives the same segments, runs of deltas of one kind taken together.
* It holds back at most what may be the beginning of a marker, and its cost is linear.
* Nothing is lost: what looked like markup and is not comes out as text.
* A call's name is known before the call opens; each prefix of its joined argument deltas is a prefix of the final JSON.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class ReasoningDelta(NamedTuple):
    """More of the model's reasoning; never empty."""

    text: str


class TextDelta(NamedTuple):
    """More of the visible text; never empty."""

    text: str


class CallOpened(NamedTuple):
    """A call of the function ``name`` begins."""

    name: str


class ArgumentsDelta(NamedTuple):
    """More of the open call's arguments, as JSON text; never empty."""

    json: str


class CallClosed(NamedTuple):
    """The open call ends. ``complete`` is false where the generation ended, or its markup broke, inside it."""

    complete: bool


Segment = ReasoningDelta | TextDelta | CallOpened | ArgumentsDelta | CallClosed


class Parser(Protocol):
    """Reads one generated text."""

    def feed(self, text: str) -> list[Segment]:
        """The segments that ``text`` adds."""

    def end(self) -> list[Segment]:
        """What was held back, and the end of what is open."""


class PlainText:
    """The parser of a model without markup: all text is visible."""

    def feed(self, text: str) -> list[Segment]:
        """The text as it is."""
        return [TextDelta(text)] if text else []

    def end(self) -> list[Segment]:
        """Nothing is held back."""
        return []
