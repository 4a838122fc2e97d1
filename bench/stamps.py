"""A clock that is read in the text of a token.

Every tick of a one-second clock has a word of its own in the model's vocabulary. The fake Triton sends the word of the
moment at which it writes the token, so the reader of the event stream knows how long that one token was on its way,
however the parts between split or join the text. Both sides read CLOCK_MONOTONIC, which all processes share on Linux.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer

TICKS = 20_000
"""Ticks of the clock in its cycle of one second: one tick is 50 µs."""

_WORD = re.compile(r" [A-Za-z]+")


class Stamps:
    """The table of words: ``ids[tick]`` is a token id, ``ticks[word]`` reads it back."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take the first :data:`TICKS` ids whose text is a blank and then ASCII letters.

        Such texts come out of detokenization unchanged wherever they stand, and need no escape in JSON.

        Raises:
            ValueError: the vocabulary has too few of them.
        """
        self.ids: list[int] = []
        self.ticks: dict[str, int] = {}
        for token_id in range(tokenizer.get_vocab_size()):
            text = tokenizer.decode([token_id])
            if _WORD.fullmatch(text) and text[1:] not in self.ticks:
                self.ticks[text[1:]] = len(self.ids)
                self.ids.append(token_id)
            if len(self.ids) == TICKS:
                return
        raise ValueError(f"the vocabulary has {len(self.ids)} plain words, the clock needs {TICKS}")

    @classmethod
    def of_file(cls, path: Path) -> Stamps:
        """The table of a ``tokenizer.json``."""
        return cls(Tokenizer.from_file(str(path)))

    def read(self, text: str) -> list[int]:
        """The ticks in a piece of text made of whole tokens.

        Raises:
            KeyError: the text holds something else than words of the table.
        """
        return [self.ticks[word] for word in text.split()]


def tick_now() -> int:
    """The clock's present tick, 0 ≤ tick < :data:`TICKS`."""
    return time.monotonic_ns() * TICKS // 1_000_000_000 % TICKS


def written_at(ticks: Iterable[int], start: float) -> Sequence[float]:
    """The times at which a stream's tokens were written, in seconds of CLOCK_MONOTONIC.

    ``start`` is when the request was sent. The hand has turned less than once between two tokens, and between the
    start and the first one; a stream that is slower by intent cannot be measured with this clock.
    """
    position = round(start * TICKS)
    times = []
    for tick in ticks:
        position += (tick - position) % TICKS
        times.append((position + 0.5) / TICKS)
    return times
