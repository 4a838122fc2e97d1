"""What a prompt may cost: whether it can fit its model's context, found out with work that the context bounds.

To encode ten megabytes takes seconds and gigabytes, only to find that they never fit. So a long text is first counted
in slices, which cannot be the prompt's ids, because a cut may fall into a token, but tell when to stop: the work is at
most a context and a half of tokens, and the text that is then encoded whole has at most two contexts of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

# No text is written with so many characters to a token, on average over a whole context.
_CHARACTERS_OF_A_TOKEN = 16
# Encoding this many characters at once, or this many tokens, takes some tens of milliseconds and megabytes.
_SHORT_CHARACTERS = 256 * 1024
_FEW_TOKENS = 64 * 1024
_SLICE = 32 * 1024
# A cut changes the tokens of what stands at it; where words that are too long become one unknown token, by a hundred
# on either side.
_TOKENS_OF_A_CUT = 256


def is_far_too_long(values: Sequence[Any], context_length: int) -> bool:
    """Whether the texts in ``values``, at any depth, are too long for a context of so many tokens, by their length."""
    return sum(map(_characters, values)) > max(_SHORT_CHARACTERS, _CHARACTERS_OF_A_TOKEN * context_length)


def surely_exceeds(text: str, context_length: int, encode: Callable[[str], Sequence[int]]) -> bool:
    """Whether ``text`` has more than ``context_length`` tokens; ``False`` where only encoding it whole can tell.

    After ``False``, that is affordable. ``encode`` gives the ids of a slice.
    """
    if is_far_too_long([text], context_length):
        return True
    affordable = max(_FEW_TOKENS, 2 * context_length)
    # Hardly any text has more tokens than bytes.
    most_left = _bytes(text)
    limit, tokens, start = context_length, 0, 0
    while tokens + most_left > affordable and most_left > 0:
        piece = text[start : start + _SLICE]
        start += _SLICE
        most_left -= _bytes(piece)
        tokens += len(encode(piece))
        limit += _TOKENS_OF_A_CUT
        if tokens > limit:
            return True
    return False


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(map(_characters, value))
    if isinstance(value, dict):
        return sum(map(_characters, value)) + sum(map(_characters, value.values()))
    return 0


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
