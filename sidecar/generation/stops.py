"""Stop strings: text that ends an answer and is not part of it.

An automaton with a bounded hold-back: text that may be the start of a stop string is kept until it is decided, at most
one character less than the longest of them.
"""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Cuts a text at the first stop string; any split of the text gives the same result."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.matched = False
        self._stops = tuple(stop for stop in stops if stop)
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""

    def feed(self, text: str) -> str:
        """The part of the text so far that surely belongs to the answer and was not returned before."""
        if self.matched:
            return ""
        if not self._stops:
            return text
        text = self._held + text
        # The stop string that is complete first wins, whole or in pieces: the order of completion knows no splits.
        matches = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if matches:
            self.matched, self._held = True, ""
            return text[: min(matches)[1]]
        keep = self._undecided(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> str:
        """The text still held back: nothing followed it, so it belongs to the answer."""
        held, self._held = self._held, ""
        return held

    def _undecided(self, text: str) -> int:
        """How many characters at the end of ``text`` may be the start of a stop string."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            tail = text[len(text) - length :]
            if any(stop.startswith(tail) for stop in self._stops):
                return length
        return 0
