"""The last hour in steps of ten seconds: what each worker adds, and the sums of all workers.

A step of a worker is 64 whole numbers of 8 bytes in its file, which is a ring: the number of the step since the epoch,
what :class:`Count` names, then the first tokens by how long they took. So the sums of workers are sums of numbers, and
what a worker had added stays when it dies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import ceil, log
from operator import add
from pathlib import Path

from sidecar.telemetry.recent.mapped import open_mapped, read_mapped

STEP_SECONDS = 10
STEPS = 360
"""Whole steps that are told: an hour."""

_LAYOUT = b"steps of 10 s 1"
_SUFFIX = ".steps"
_WORDS = 64
# The one under way, and one more, so that none that is told is written over while it is read.
_KEPT = STEPS + 2
_BYTES = _KEPT * _WORDS * 8

# Each bucket of first tokens ends 1.26 times as late as the one before: from a millisecond to some eight minutes.
_RATIO = 2 ** (1 / 3)
_LEAST_SECONDS = 0.001


class Count(IntEnum):
    """What is counted in a step, by its place there.

    ``REFUSED`` requests could not be served as they were, ``FAILED`` ones for a reason of the node or of the model.
    ``STREAM_MS`` are the milliseconds that streams have gone on, of all of them together.
    """

    REQUESTS = 1
    REFUSED = 2
    FAILED = 3
    INPUT_TOKENS = 4
    OUTPUT_TOKENS = 5
    STREAM_MS = 6


_FIRST_BUCKET = max(Count) + 1
_BUCKETS = _WORDS - _FIRST_BUCKET


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the node: ``words`` as in a file."""

    words: Sequence[int]

    def __getitem__(self, count: Count) -> int:
        return self.words[count]

    def first_token(self, share: float) -> float | None:
        """The time to the first token, in seconds, below which this share of the answers was; none without answers."""
        counts = self.words[_FIRST_BUCKET:]
        wanted = share * sum(counts)
        if not wanted:
            return None
        below = 0
        for bucket, count in enumerate(counts):
            if below + count >= wanted:
                within: float = _LEAST_SECONDS * _RATIO ** (bucket - 1 + (wanted - below) / count)
                return within
            below += count
        raise AssertionError("all of them are below the last bucket's end")


def together(steps: Iterable[Step]) -> Step:
    """Several as one, as far as they are counts."""
    return Step([sum(words) for words in zip(*(step.words for step in steps), strict=True)])


class Steps:
    """Adds up what one worker does; ``clock`` tells seconds since the epoch."""

    def __init__(self, directory: Path, index: int, clock: Callable[[], float] = time.time) -> None:
        """Go on in the file of the worker ``index``.

        Raises:
            OSError: it cannot be made.
        """
        self._words = open_mapped(directory / f"{index}{_SUFFIX}", _LAYOUT, _BYTES).cast("q")
        self._clock = clock

    def add(self, count: Count, amount: int = 1) -> None:
        """So much more in the step under way."""
        self._words[self._step() + count] += amount

    def first_token(self, seconds: float) -> None:
        """An answer's first token has taken so long."""
        bucket = ceil(log(seconds / _LEAST_SECONDS, _RATIO)) if seconds > _LEAST_SECONDS else 0
        self._words[self._step() + _FIRST_BUCKET + min(bucket, _BUCKETS - 1)] += 1

    def _step(self) -> int:
        """Where the step under way begins, which is emptied when it begins."""
        number = int(self._clock() // STEP_SECONDS)
        at = number % _KEPT * _WORDS
        words = self._words
        if words[at] != number:
            # Who reads meanwhile takes it for none.
            for word in range(at, at + _WORDS):
                words[word] = 0
            words[at] = number
        return at


def read_steps(directory: Path, now: float) -> list[Step]:
    """The last :data:`STEPS` whole steps of all workers together, the oldest first, and then the one under way.

    ``now`` is in seconds since the epoch. This reads files: it is not for an event loop.
    """
    last = int(now // STEP_SECONDS)
    numbers = range(last - STEPS, last + 1)
    sums = {number: [0] * _WORDS for number in numbers}
    for words in _all_words(directory):
        for number in numbers:
            at = number % _KEPT * _WORDS
            if words[at] == number:
                sums[number] = list(map(add, sums[number], words[at : at + _WORDS]))
    return [Step(sums[number]) for number in numbers]


def _all_words(directory: Path) -> Iterator[memoryview]:
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        if (content := read_mapped(path, _LAYOUT, _BYTES)) is not None:
            yield memoryview(content).cast("q")
