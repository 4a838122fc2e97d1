"""How much of an answer its client has been given: counted where bytes are handed over, not where they are generated.

A *mark* is how far an answer has come with one message to the client, as a single integer, so that it is noted by one
plain store: the output tokens in its lowest 32 bits, those of them that are reasoning in the next 31, and the highest
bit set. The mark 0 is that of an answer of which the client has nothing.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

NOTHING = 0
"""The mark of an answer of which the client has nothing, and of a message that holds nothing of one."""
BEGUN = 1 << 63
"""The bit that tells the begin of an answer, which may hold no token, from nothing."""
REASONING_AT = 32
"""How many bits above the output tokens the reasoning tokens stand."""

_TOKENS = (1 << 31) - 1


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
        return cls(mark >= BEGUN, mark & _TOKENS, mark >> REASONING_AT & _TOKENS)


def mark_of(output_tokens: int, reasoning_tokens: int) -> int:
    """The mark of an answer that has come this far; each number is below 2^31."""
    return BEGUN | reasoning_tokens << REASONING_AT | output_tokens


class Delivered:
    """How far an answer has come: ``written`` is the mark of what stands in messages, ``cell`` of what was handed over.

    What waits in a transport is written and not handed over. Whoever keeps account puts a cell of its own in place
    before the upstream is called.
    """

    __slots__ = ("cell", "written")

    def __init__(self) -> None:
        self.cell: Cell = [NOTHING]
        self.written = NOTHING

    @property
    def counts(self) -> Counts:
        """What has been handed over."""
        return Counts.of(self.cell[0])

    def detach(self) -> None:
        """Nothing is handed over any more: keep the mark here, so that its cell may serve another answer."""
        self.cell = [self.cell[0]]
