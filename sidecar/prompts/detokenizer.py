"""Token ids to text, piece by piece, never half a character.

Byte-level vocabularies, which nearly all current models have, need no decoder: each token is a fixed run of bytes, and
an incremental UTF-8 decoder joins the runs. Other vocabularies go through the tokenizer's own stream decoder.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Protocol

import tokenizers
from tokenizers.decoders import DecodeStream

ByteTable = Mapping[int, bytes]
"""The bytes of each token id; special tokens have none."""


class Detokenizer(Protocol):
    """Text of one generated answer, as its tokens arrive. Special tokens and unknown ids have no text."""

    def feed(self, ids: Sequence[int]) -> str:
        """The text that these ids complete; what they leave unfinished comes with later ids."""

    def end(self) -> str:
        """What is still held back and is more than an unfinished character, which is dropped."""


class ByteLevelDetokenizer:
    """Joins the bytes of tokens and decodes them; bytes that are not UTF-8 become U+FFFD."""

    def __init__(self, table: ByteTable) -> None:
        self._bytes_of = table.get
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode

    def feed(self, ids: Sequence[int]) -> str:
        """Constant work per id, whatever came before."""
        bytes_of = self._bytes_of
        return self._decode(b"".join([bytes_of(token_id, b"") for token_id in ids]))

    def end(self) -> str:
        """Nothing: only an unfinished character can be left."""
        return ""


class StreamDetokenizer:
    """The tokenizer's own incremental decoder, for every other kind of vocabulary."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)

    def feed(self, ids: Sequence[int]) -> str:
        """Decodes a short window of the latest ids for each id."""
        step, tokenizer = self._stream.step, self._tokenizer
        return "".join([step(tokenizer, token_id) or "" for token_id in ids])

    def end(self) -> str:
        """Nothing: the stream holds back unfinished characters only."""
        return ""


def byte_table(tokenizer: tokenizers.Tokenizer) -> ByteTable | None:
    """The bytes of each token of a byte-level vocabulary; ``None`` for a vocabulary of another kind."""
    if not isinstance(tokenizer.decoder, tokenizers.decoders.ByteLevel):
        return None
    table = {token_id: _token_bytes(token) for token, token_id in tokenizer.get_vocab(with_added_tokens=True).items()}
    special = {token_id: b"" for token_id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    return table | special


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
