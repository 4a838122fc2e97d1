"""White space that may turn out to belong to no text is looked at once, however long it gets."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from sidecar.backends.backend import Take
from sidecar.exchange.answer import Answer
from sidecar.generation.segments import TEXT, Segment
from sidecar.generation.stops import StopStrings
from sidecar.responses.events import EventWriter
from sidecar.responses.ids import ResponseIds
from sidecar.responses.usage import Usage
from tests.core.exchange.test_answer import Pieces

PIECES = 500
LENGTH = 20


class Touched:
    """The characters that have been fed, and how many were gone through, by operators on them and methods of text."""

    def __init__(self) -> None:
        self.fed = self.characters = 0

    def note(self, frame: FrameType, event: str, function: Any) -> None:
        """A profiler: it sees each method of a text that is called."""
        if event == "c_call" and isinstance(text := getattr(function, "__self__", None), str):
            # What is joined is not shown; it may be all that there is.
            self.characters += self.fed if function.__name__ == "join" else len(text)


class Watched(str):
    """A text whose sums are counted. Methods of text give plain ones."""

    __slots__ = ("touched",)
    touched: Touched

    @classmethod
    def of(cls, text: str, touched: Touched) -> Watched:
        watched = cls(text)
        watched.touched = touched
        touched.characters += len(text)
        return watched

    def __add__(self, other: str) -> Watched:
        return Watched.of(str.__add__(self, other), self.touched)

    def __radd__(self, other: str) -> Watched:
        return Watched.of(str.__add__(other, self), self.touched)


class WatchedPieces(Pieces):
    """An upstream whose texts are watched."""

    def __init__(self, touched: Touched) -> None:
        self.touched = touched

    def feed(self, data: bytes, take: Take) -> None:
        text = data.decode()
        self.touched.fed += len(text)
        take(Watched.of(text, self.touched), 1)


class AllText:
    """A parser to which all is visible text; it looks at nothing."""

    repaired_calls = 0
    in_reasoning = False

    def plain(self, text: str) -> None:
        return None

    def feed(self, text: str) -> list[Segment]:
        return [(TEXT, text)]

    def end(self, *, cut: bool = False) -> list[Segment]:
        return []


def test_white_space_before_a_text_is_gone_through_once() -> None:
    touched = Touched()
    writer = EventWriter(ResponseIds("0" * 26), {"id": "resp_0"})
    answer = Answer(WatchedPieces(touched), writer, StopStrings(()), AllText(), Usage(), parallel_calls=True)
    profiler = sys.getprofile()
    sys.setprofile(touched.note)
    try:
        for _ in range(PIECES):
            answer.feed(b" " * LENGTH)
    finally:
        sys.setprofile(profiler)
    # Once as it comes, and once to see what it is.
    assert touched.characters >= 2 * PIECES * LENGTH
    assert touched.characters <= 4 * PIECES * LENGTH
    answer.feed(b"x")
    answer.close(("", 0), "stop")
    assert answer.text == " " * (PIECES * LENGTH) + "x"
