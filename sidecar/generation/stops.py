"""Stop strings: text that ends an answer and is not part of it.

Text that may be the start of a stop string is kept until it is decided, at most one character less than the longest of
them. The stop string that is complete first is the one, so that any split of the text gives the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sidecar.generation.markers import Markers


class StopStrings:
    """Cuts a text at the first stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.any = any(stops)
        """Whether there are any: without them a text need not be fed."""
        self.matched = False
        self._search = _markers(tuple(stops)).search
        self._held = ""

    def feed(self, text: str) -> str:
        """The part of the text so far that surely belongs to the answer and was not returned before."""
        if self.matched:
            return ""
        if self._held:
            text = self._held + text
            self._held = ""
        match = self._search(text)
        if match is None:
            return text
        self.matched = match["whole"] is not None
        if not self.matched:
            self._held = match[0]
        return text[: match.start()]

    def end(self) -> str:
        """The text still held back: nothing followed it, so it belongs to the answer."""
        held, self._held = self._held, ""
        return held


@lru_cache(maxsize=64)
def _markers(stops: tuple[str, ...]) -> Markers:
    return Markers(*filter(None, stops))
