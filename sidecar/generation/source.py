"""Text that arrives in pieces, read by coroutines as if it were whole.

A parser of generated text reads from top to bottom and yields wherever it needs more text to go on. Before it yields it
takes what it has read, all but what may be the beginning of a marker, so its cost is linear in the text. It asks what
the text goes on with, never what has come already, so the pieces make no difference.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator
from typing import TypeVar

from sidecar.generation.markers import Markers

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A reading that yields whenever it needs more text, and returns what it has found."""

Emit = Callable[[str], object]
"""Where read text goes."""

_SPACE = re.compile(r"\s*")
_NONE = Markers()


class Source:
    """The text of one generation: pieces come in, a parser takes characters off the front.

    While ``awaited`` is set, the reading waits for what it searches, and a piece in which it finds nothing may be given
    to ``emit`` directly. ``cut`` tells that the token limit ended the text.
    """

    def __init__(self) -> None:
        self.awaited: Callable[[str], re.Match[str] | None] | None = None
        self.emit: Emit = str
        self.ended = False
        self.cut = False
        self._text = ""
        self._at = 0
        self._held: list[str] | None = None

    def feed(self, text: str) -> None:
        """Add a piece at the back."""
        self.awaited = None
        self._text = self._text[self._at :] + text
        self._at = 0

    def end(self, cut: bool = False) -> None:
        """No more pieces will come."""
        self.awaited = None
        self.ended = True
        self.cut = cut

    def take(self, length: int) -> str:
        """Take the next ``length`` characters off the front."""
        return self._take_to(self._at + length)

    def take_rest(self) -> str:
        """Take all that has come."""
        return self._take_to(len(self._text))

    def hold(self) -> None:
        """From here on, or on from where this was called before, keep what is taken: it may turn out to be text."""
        if self._held is None:
            self._held = []

    def release(self) -> str:
        """What was taken since :meth:`hold`; nothing is kept any longer."""
        held, self._held = self._held or [], None
        return "".join(held)

    def peek(self) -> Steps[str]:
        """The next character, left where it is; empty at the end."""
        while self._at == len(self._text) and not self.ended:
            yield
        return self._text[self._at : self._at + 1]

    def run(self, pattern: re.Pattern[str], emit: Emit) -> Steps[None]:
        """Pass on characters while they match ``pattern``, which must match any part of what it matches."""
        while True:
            match = pattern.match(self._text, self._at)
            if match and match.end() > self._at:
                emit(self._take_to(match.end()))
            if self._at < len(self._text) or self.ended:
                return
            yield

    def word(self, pattern: re.Pattern[str], most: int) -> Steps[str]:
        """Take characters while they match ``pattern``, as :meth:`run`, but no more than ``most``, and tell them."""
        parts: list[str] = []
        while True:
            match = pattern.match(self._text, self._at, self._at + most)
            if match and match.end() > self._at:
                parts.append(self._take_to(match.end()))
                most -= len(parts[-1])
            if self._at < len(self._text) or self.ended or not most:
                return "".join(parts)
            yield

    def next_word(self, pattern: re.Pattern[str], most: int) -> Steps[str]:
        """The next characters that match ``pattern``, at most ``most``, left where they are."""
        while True:
            match = pattern.match(self._text, self._at, self._at + most)
            word = match[0] if match else ""
            if self._at + len(word) < len(self._text) or self.ended or len(word) == most:
                return word
            yield

    def space(self) -> Steps[None]:
        """Take white space."""
        yield from self.run(_SPACE, str)

    def ahead(self, *options: str) -> Steps[str]:
        """Tell which of the options the text goes on with; empty where with none. Nothing is taken."""
        longest = max(map(len, options), default=0)
        while True:
            text = self._text[self._at : self._at + longest]
            for option in options:
                if text.startswith(option):
                    return option
            if self.ended or not any(option.startswith(text) for option in options):
                return ""
            yield

    def literal(self, *options: str) -> Steps[str]:
        """Take whichever of the options the text goes on with, and tell it; empty, nothing taken, where with none."""
        option = yield from self.ahead(*options)
        self.take(len(option))
        return option

    def token(self, whole: re.Pattern[str], begun: re.Pattern[str]) -> Steps[str]:
        """Take what ``whole`` matches, waiting while ``begun`` matches all that has come; empty where neither does."""
        while True:
            match = whole.match(self._text, self._at)
            if match:
                return self._take_to(match.end())
            if self.ended or not begun.fullmatch(self._text, self._at):
                return ""
            yield

    def until(self, markers: Markers, emit: Emit, most: int = sys.maxsize) -> Steps[str]:
        """Pass on text up to the first marker, and tell it; it is left where it is.

        Empty at the end of all text, or after ``most`` characters without a marker.
        """
        while True:
            match = markers.search(self._text, self._at)
            before = match.start() if match else len(self._text)
            if self.ended and not (match and match["whole"]):
                before = len(self._text)
            within = before - self._at <= most
            before = before if within else self._at + most
            if before > self._at:
                most -= before - self._at
                emit(self._take_to(before))
            if within and match and match["whole"]:
                return str(match["whole"])
            if self.ended or not within:
                return ""
            if self._held is None and self._at == len(self._text):
                self.awaited, self.emit = markers.search, emit
            yield

    def rest(self, emit: Emit) -> Steps[None]:
        """Pass on all text that still comes."""
        yield from self.until(_NONE, emit)

    def _take_to(self, end: int) -> str:
        text = self._text[self._at : end]
        self._at = end
        if self._held is not None:
            self._held.append(text)
        return text
