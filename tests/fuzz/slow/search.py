"""A search for inputs that cost more than their size allows.

It climbs: it changes the dearest inputs that it knows, and keeps what is dearer. The dearest are kept for each order of
size, so that it sees what grows faster than an input does. An input that takes longer than
:data:`~tests.hostile.work.MOST_SECONDS` of CPU time ends the process.
"""

from __future__ import annotations

import gc
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from tests.hostile.work import limit

Input = TypeVar("Input")

_KEPT = 4
"""Of each order of size."""
_MOST_CHANGES = 4
# What takes more of its budget is tried again: something else may have taken the time.
_DOUBTED = 0.4
_COLLECTED_EVERY = 100


class Target(ABC, Generic[Input]):
    """What is searched: inputs, and what they cost."""

    most_bytes: int
    """Larger inputs are not tried."""

    @abstractmethod
    def seeds(self) -> Sequence[Input]:
        """Where the search begins."""

    @abstractmethod
    def changed(self, old: Input, other: Input, chance: random.Random) -> Input:
        """``old`` with one change, to which ``other`` may give something."""

    @abstractmethod
    def text(self, input: Input) -> str:
        """``input`` in a form from which it can be made again."""

    @abstractmethod
    def size(self, input: Input) -> int:
        """The bytes of ``input``."""

    @abstractmethod
    def share(self, input: Input) -> float:
        """What ``input`` takes of that which it may take: more than 1 is too much."""


@dataclass(frozen=True, slots=True)
class Found(Generic[Input]):
    """An input, what it takes of what it may take, and its bytes."""

    input: Input
    share: float
    size: int


@dataclass(slots=True)
class Search(Generic[Input]):
    """One search; it does the same with the same ``chance``, as far as what it measures is the same."""

    target: Target[Input]
    chance: random.Random
    last: Path
    """Where each input is written before it is tried."""
    tried: int = 0
    _best: dict[int, list[Found[Input]]] = field(default_factory=dict)

    def begin(self) -> None:
        """Try the seeds."""
        for seed in self.target.seeds():
            self._try(seed)

    def step(self) -> None:
        """Try one input."""
        chance, target = self.chance, self.target
        new = self._any()
        for _ in range(chance.randint(1, _MOST_CHANGES)):
            new = target.changed(new, self._any(), chance)
        self._try(new)

    def run_for(self, seconds: float) -> None:
        """Go on for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()

    @property
    def dearest(self) -> list[Found[Input]]:
        """The dearest of each order of size, small ones first."""
        return [self._best[order][0] for order in sorted(self._best)]

    def _any(self) -> Input:
        # Each order of size is as good as the others.
        return self.chance.choice(self._best[self.chance.choice(list(self._best))]).input

    def _try(self, new: Input) -> None:
        size = self.target.size(new)
        if size > self.target.most_bytes:
            return
        self.last.write_text(self.target.text(new), encoding="utf-8", errors="backslashreplace")
        limit()
        self.tried += 1
        if self.tried % _COLLECTED_EVERY == 0:
            gc.collect()
        share = self.target.share(new)
        found = Found(new, min(share, self.target.share(new)) if share > _DOUBTED else share, size)
        kept = self._best.setdefault(size.bit_length(), [])
        kept.append(found)
        kept.sort(key=lambda it: it.share, reverse=True)
        del kept[_KEPT:]
