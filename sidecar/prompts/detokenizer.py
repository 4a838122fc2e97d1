"""Token ids to text, piece by piece, never half a character.

Byte-level vocabularies, which nearly all current models have, need no decoder: each token is a fixed run of bytes, and
an incremental UTF-8 decoder joins the runs. Other vocabularies go through the tokenizer's own decoder.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Protocol

import tokenizers

_BYTES_OF_A_CHARACTER = 4

ByteTable = Mapping[int, str | bytes]
"""What each token id stands for: text where it is whole characters, else bytes; special tokens have none."""


class Detokenizer(Protocol):
    """Text of one generated answer, as its tokens arrive. Special tokens and unknown ids have no text."""

    def feed(self, ids: Sequence[int]) -> str:
        """The text that these ids complete; what they leave unfinished comes with later ids."""

    def end(self) -> str:
        """What is still held back and is more than an unfinished character, which is dropped."""


class ByteLevelDetokenizer:
    """Joins the bytes of tokens and decodes them; bytes that are not UTF-8 become U+FFFD."""

    def __init__(self, table: ByteTable) -> None:
        self._table = table
        self._begun = b""

    def feed(self, ids: Sequence[int]) -> str:
        """Constant work per id, whatever came before."""
        table = self._table
        if len(ids) == 1 and not self._begun:
            # Nearly every token is whole characters, which need no decoding where no character has begun.
            text = table.get(ids[0], "")
            if type(text) is str:
                return text
        runs = [table.get(token_id, b"") for token_id in ids]
        data = self._begun + b"".join([run.encode() if isinstance(run, str) else run for run in runs])
        text, size = codecs.utf_8_decode(data, "replace", False)
        self._begun = data[size:]
        return text

    def end(self) -> str:
        """Nothing: only an unfinished character can be left."""
        return ""


class WindowDetokenizer:
    """For every other kind of vocabulary: decodes each id together with those before it, as far as they matter.

    The library's own ``DecodeStream`` does the same, but fails for good on byte sequences that are not UTF-8, which a
    model may well generate.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._decode = tokenizer.decode
        # Ids whose text is out: the decoder treats what follows them otherwise than the start of a text.
        self._context: list[int] = []
        self._context_text = ""
        self._pending: list[int] = []

    def feed(self, ids: Sequence[int]) -> str:
        """Decodes a few ids for each id, whatever came before."""
        return "".join([self._feed_one(token_id) for token_id in ids if token_id >= 0])

    def end(self) -> str:
        """The text of ids that wait for more, without the unfinished character that made them wait."""
        return self._text_of_pending().rstrip("\ufffd")

    def _feed_one(self, token_id: int) -> str:
        self._pending.append(token_id)
        text = self._text_of_pending()
        if text.endswith("\ufffd") and len(self._pending) < _BYTES_OF_A_CHARACTER:
            return ""
        if text:
            self._context, self._context_text = self._pending, self._decode(self._pending)
        self._pending = []
        return text

    def _text_of_pending(self) -> str:
        return self._decode(self._context + self._pending)[len(self._context_text) :]


def byte_table(tokenizer: tokenizers.Tokenizer) -> ByteTable | None:
    """What the tokens of a byte-level vocabulary stand for; ``None`` for a vocabulary of another kind."""
    if not isinstance(tokenizer.decoder, tokenizers.decoders.ByteLevel):
        return None
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    table = {token_id: _as_text(_token_bytes(token)) for token, token_id in vocabulary.items()}
    special = {token_id: "" for token_id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    return table | special


def _as_text(data: bytes) -> str | bytes:
    """The text that ``data`` is, where it is whole characters."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _token_bytes(token: str) -> bytes:
    """As the byte-level decoder reads a token: a byte per character; with a character outside the alphabet, UTF-8."""
    try:
        return bytes([_BYTE_OF[character] for character in token])
    except KeyError:
        return token.encode()


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 characters stand for their own byte, U+0100 and up for the other bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()
