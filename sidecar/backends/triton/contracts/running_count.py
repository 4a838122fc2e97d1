"""The tokens of a text that grows, counted chunk by chunk: the end of a long answer costs no more than its middle."""

from __future__ import annotations

import re
from collections.abc import Callable

CHUNK = 4096
"""Characters that are counted at once: about a millisecond's work."""

# The end of the last word that a space or line break and another word follow. Vocabularies cut there.
_QUIET_PLACE = re.compile(r".*[^\W\d_](?=[ \n][^\W\d_])", re.DOTALL)
# Where there is none: the last space that stands alone, which is at least not within a number or a control token.
_LONE_SPACE = re.compile(r".*\S(?= \S)", re.DOTALL)


class RunningCount:
    """Counts like ``count``, which tells the tokens of a whole text, and holds two chunks of text at most.

    Chunks end between two words. A vocabulary of bytes cuts there itself, and the count is exact. Where there is no
    such place in a chunk, or where the vocabulary treats the beginning of a text in its own way, each further chunk may
    add a token or two.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._pieces: list[str] = []
        self._characters = 0
        self._tokens = 0
        self._last_chunk = ""
        self._last_count = 0

    def add(self, text: str) -> None:
        """The text goes on with ``text``."""
        # Pieces are small, save where a runtime gives a whole answer at once.
        for start in range(0, len(text), CHUNK):
            piece = text[start : start + CHUNK]
            self._pieces.append(piece)
            self._characters += len(piece)
            if self._characters >= CHUNK:
                self._count_chunk()

    def total(self) -> int:
        """The tokens of all of it."""
        self._tokens += self._count("".join(self._pieces))
        self._keep("")
        return self._tokens

    def _count_chunk(self) -> None:
        text = "".join(self._pieces)
        quiet = _QUIET_PLACE.match(text) or _LONE_SPACE.match(text)
        end = quiet.end() if quiet else len(text)
        chunk = text[:end]
        # A model that has lost its way writes spaces without end, most of all where a guide lets it write nothing else.
        if chunk != self._last_chunk:
            self._last_chunk, self._last_count = chunk, self._count(chunk)
        self._tokens += self._last_count
        self._keep(text[end:])

    def _keep(self, text: str) -> None:
        self._pieces = [text] if text else []
        self._characters = len(text)
