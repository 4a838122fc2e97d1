"""Keeps text of a conversation from turning into control tokens.

A rendered prompt is one string in which the template's ``<|im_end|>`` ends a turn. A user who writes the same
characters must not end a turn. So a cut, a character that text never holds, is put after the first character of each
such marker *in the data, before rendering*; the tokenizer encodes what stands before and after a cut apart, and then no
token, added or learned, can span it. A prompt without a marker in its data holds no cut, and is encoded as one string.

Two pieces of data that a template writes side by side could make up a marker between them. Therefore the beginning of a
marker at the end of a string is cut as well (before trailing white space, since templates trim).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

CUT = "\ufdd0"
"""U+FDD0, a noncharacter, kept by Unicode for use inside programs. One that a client sends cuts too, and is lost."""


class MarkerGuard:
    """Cuts the given markers wherever they occur in data.

    Left out are markers of one character, which cannot be cut, and those that begin with a letter or digit, which are
    no markup and would have ordinary words cut.
    """

    def __init__(self, markers: Iterable[str]) -> None:
        trie: _Trie = {}
        for marker in markers:
            if len(marker) > 1 and not marker[0].isalnum():
                _insert(trie, marker)
        # One pattern per first character, which alone is consumed, so that markers which overlap are all found. With a
        # literal in front and a replacement without groups, all work is done in C.
        self._markers = [
            (re.compile(re.escape(first) + f"(?={_rest(node)})"), first + CUT) for first, node in trie.items()
        ]

    def protect(self, value: Any) -> Any:
        """The same text, list or object, keys included, with a cut in each marker; other values stay as they are."""
        if not self._markers:
            return value
        if isinstance(value, str):
            return self._cut(value)
        if isinstance(value, list):
            return [self.protect(member) for member in value]
        if isinstance(value, dict):
            return {self.protect(key): self.protect(member) for key, member in value.items()}
        return value

    def _cut(self, text: str) -> str:
        # A marker that an earlier pass has cut is no longer found, and need not be.
        for pattern, replacement in self._markers:
            text = pattern.sub(replacement, text)
        return text


_Trie = dict[str, "_Trie"]
_END = ""


def _insert(trie: _Trie, word: str) -> None:
    for character in word:
        trie = trie.setdefault(character, {})
    trie[_END] = {}


def _alternatives(trie: _Trie) -> str:
    """A pattern for the trie's words; a trie keeps it fast with a thousand markers that begin alike."""
    return "(?:" + "|".join(re.escape(character) + _rest(node) for character, node in trie.items()) + ")"


def _rest(trie: _Trie) -> str:
    if _END in trie:
        return ""
    return "(?:" + _alternatives(trie) + r"|\s*\Z)"
