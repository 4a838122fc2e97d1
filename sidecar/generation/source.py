"""Text that arrives in pieces, read by coroutines as if it were whole.

A parser of generated text reads from top to bottom and yields wherever it needs more text to go on. Before it yields it
takes what it has read, all but what may be the beginning of a marker, so its cost is linear in the text. It asks what
the text goes on with, never what has come already, so the pieces make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A reading that yields whenever it needs more text, and returns what it has found."""

Emit = Callable[[str], object]
"""Where read text goes."""

_SPACE = re.compile(r"\s*")


class Markers:
    """Strings to look for. None may be the beginning of another, so that the first one found is the one."""

    def __init__(self, *markers: str) -> None:
        whole = "|".join(map(re.escape, markers))
        begun = "|".join(map(_begun, markers))
        first = "".join({re.escape(marker[0]) for marker in markers})
        # The first characters alone are looked for at the speed of the regex engine's character sets.
        self.pattern = re.compile(rf"(?=[{first}])(?:(?P<whole>{whole})|(?:{begun})\Z)")


def _begun(marker: str) -> str:
    """A pattern for all beginnings of ``marker``."""
    pattern = ""
    for character in reversed(marker[1:]):
        pattern = f"(?:{re.escape(character)}{pattern})?"
    return re.escape(marker[0]) + pattern


class Source:
    """The text of one generation: pieces come in, a parser takes characters off the front."""

    def __init__(self) -> None:
        self.ended = False
        self._text = ""
        self._at = 0
        self._held: list[str] | None = None

    def feed(self, text: str) -> None:
        """Add a piece at the back."""
        self._text = self._text[self._at :] + text
        self._at = 0

    def end(self) -> None:
        """No more pieces will come."""
        self.ended = True

    def take(self, length: int) -> str:
        """Take the next ``length`` characters off the front."""
        return self._take_to(self._at + length)

    def take_rest(self) -> str:
        """Take all that has come."""
        return self._take_to(len(self._text))

    def hold(self) -> None:
        """From here on, keep what is taken: it may turn out to be text."""
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

    def space(self) -> Steps[None]:
        """Take white space."""
        yield from self.run(_SPACE, str)

    def literal(self, *options: str) -> Steps[str]:
        """Take whichever of the options the text goes on with, and tell it; empty, nothing taken, where with none."""
        longest = max(map(len, options))
        while True:
            text = self._text[self._at : self._at + longest]
            for option in options:
                if text.startswith(option):
                    return self.take(len(option))
            if self.ended or not any(option.startswith(text) for option in options):
                return ""
            yield

    def token(self, whole: re.Pattern[str], begun: re.Pattern[str]) -> Steps[str]:
        """Take what ``whole`` matches, waiting while ``begun`` matches all that has come; empty where neither does."""
        while True:
            match = whole.match(self._text, self._at)
            if match:
                return self._take_to(match.end())
            if self.ended or not begun.fullmatch(self._text, self._at):
                return ""
            yield

    def until(self, markers: Markers, emit: Emit) -> Steps[str]:
        """Pass on text up to the first marker, and tell it; it is left where it is. Empty at the end of all text."""
        while True:
            match = markers.pattern.search(self._text, self._at)
            before = match.start() if match else len(self._text)
            if self.ended and not (match and match["whole"]):
                before = len(self._text)
            if before > self._at:
                emit(self._take_to(before))
            if match and match["whole"]:
                return match["whole"]
            if self.ended:
                return ""
            yield

    def rest(self, emit: Emit) -> Steps[None]:
        """Pass on all text that still comes."""
        while True:
            if self._at < len(self._text):
                emit(self.take_rest())
            if self.ended:
                return
            yield

    def _take_to(self, end: int) -> str:
        text = self._text[self._at : end]
        self._at = end
        if self._held is not None:
            self._held.append(text)
        return text
