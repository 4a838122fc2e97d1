"""Marks: how far an answer has come with one message to its client, as a single integer.

So it is noted by one plain store, that of 8 bytes. The output tokens stand in its lowest 32 bits, those of them that
are reasoning in the next 31, and the highest bit is set. The mark 0 is that of an answer of which the client has
nothing.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

NOTHING = 0
"""The mark of an answer of which the client has nothing, and of a message that holds nothing of one."""
BEGUN = 1 << 63
"""The bit that tells the begin of an answer, which may hold no token, from nothing."""
REASONING_AT = 32
"""How many bits above the output tokens the reasoning tokens stand."""

MOST_TOKENS = (1 << 31) - 1
"""The most that a mark can tell of each."""


class Cell(Protocol):
    """Where a mark stands, at index 0: a list, or 8 bytes of a file that outlives the process."""

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, mark: int, /) -> None: ...


class Counts(NamedTuple):
    """A mark in words. ``reasoning_tokens`` are part of ``output_tokens``."""

    begun: bool
    output_tokens: int
    reasoning_tokens: int

    @classmethod
    def of(cls, mark: int) -> Counts:
        """What ``mark`` tells."""
        return cls(mark >= BEGUN, mark & MOST_TOKENS, mark >> REASONING_AT & MOST_TOKENS)


def mark_of(output_tokens: int, reasoning_tokens: int) -> int:
    """The mark of an answer that has come this far; each number is below 2^31."""
    return BEGUN | reasoning_tokens << REASONING_AT | output_tokens
