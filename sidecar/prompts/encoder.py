"""Text to ids, of which the parts that came before are remembered.

A client sends a conversation again with each of its turns, and the tools with it, so nearly all of a prompt has been
encoded already. A tokenizer first cuts its text at control tokens, such as those that a chat template writes between
messages, and encodes what stands between them by itself. So a part that begins with a control token and ends before
another has the same ids wherever it stands.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

import tokenizers

from sidecar.memory import Memory

# Shorter parts are joined to the next, from the start on, so that a longer conversation begins with the same parts.
# Less than this is encoded about as fast as it is looked up.
_LEAST_CHARACTERS = 1024
# Of one model in one process; a character takes a byte of ids, and at most four.
_BUDGET = 8_000_000


class Encoder:
    """A tokenizer's way from text to ids. It may be used in any thread."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        """``tokenizer`` is not changed afterwards."""
        self._tokenizer = tokenizer
        self._control = _control_tokens(tokenizer)
        self._memory: Memory[array[int]] = Memory(_BUDGET)

    def encode(self, pieces: list[str]) -> list[int]:
        """The ids of texts, one after the other; no token spans two, and none is added."""
        parts = [part for piece in pieces for part in self._parts(piece)]
        found = {part: self._remembered(part) for part in parts}
        missing = [part for part, ids in found.items() if ids is None]
        for part, ids in zip(missing, self._encoded(missing), strict=True):
            found[part] = ids
            if self._may_remember(part):
                self._memory[part] = ids
        return list(chain.from_iterable(found[part] or () for part in parts))

    def _encoded(self, texts: list[str]) -> list[array[int]]:
        # Of the library's ways to encode, only this one lets other threads run, which a long prompt needs.
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [array("I", encoding.ids) for encoding in encodings]

    def _remembered(self, part: str) -> array[int] | None:
        if self._may_remember(part):
            with suppress(KeyError):
                return self._memory[part]
        return None

    def _may_remember(self, part: str) -> bool:
        return self._control is not None and len(part) >= _LEAST_CHARACTERS

    def _parts(self, text: str) -> Iterator[str]:
        start = 0
        if self._control is not None:
            for control in self._control.finditer(text):
                if control.start() - start >= _LEAST_CHARACTERS:
                    yield text[start : control.start()]
                    start = control.start()
        yield text[start:]


def _control_tokens(tokenizer: tokenizers.Tokenizer) -> re.Pattern[str] | None:
    """What finds the control tokens in a text as the tokenizer does, or ``None`` where they are not that simple.

    It takes those that are looked for in the text as it is, the leftmost first and then the longest, before anything
    else happens. One that takes the spaces beside it, or must be a word, depends on what stands there.
    """
    tokens = [token for token in tokenizer.get_added_tokens_decoder().values() if not token.normalized]
    if not tokens or any(token.lstrip or token.rstrip or token.single_word for token in tokens):
        return None
    longest_first = sorted((token.content for token in tokens), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))
