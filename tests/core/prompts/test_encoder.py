"""What is remembered of a prompt changes none of its ids, and is not encoded again."""

from __future__ import annotations

from array import array

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, models, pre_tokenizers

from sidecar.prompts.encoder import Encoder
from tests.core.prompts.chat_models import SENTENCES, SPECIAL, byte_fallback, byte_level


def marks_the_first_word() -> tokenizers.Tokenizer:
    """A vocabulary in which the first word of a text, and no other after a control token, has a mark."""
    pieces = ["<unk>", "▁", *"abcdefghijklmnopqrstuvwxyz,.", "▁the", "the"]
    tokenizer = tokenizers.Tokenizer(
        models.BPE({piece: index for index, piece in enumerate(pieces)}, [], unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def overlapping() -> tokenizers.Tokenizer:
    """Control tokens that begin with others, and hold them."""
    tokenizer = tokenizers.Tokenizer.from_str(byte_level().to_str())
    tokenizer.add_special_tokens(["<|start|><|end|>", "<|st", "art|>"])
    return tokenizer


TOKENIZERS = {
    "byte level": byte_level(),
    "byte fallback": byte_fallback(),
    "marks the first word": marks_the_first_word(),
    "overlapping control tokens": overlapping(),
}
PARTS = st.sampled_from(
    [*SPECIAL, "<think>", "<|st", "art|>", " ", "\n", "the", *SENTENCES, *(9 * text for text in SENTENCES)]
)
TEXTS = st.lists(PARTS, max_size=40).map("".join)


def plain(tokenizer: tokenizers.Tokenizer, pieces: list[str]) -> list[int]:
    """The ids without any memory."""
    return [token_id for piece in pieces for token_id in tokenizer.encode(piece, add_special_tokens=False).ids]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(texts=st.lists(st.lists(TEXTS, max_size=3), min_size=1, max_size=3))
def test_ids_are_those_of_the_tokenizer_whatever_came_before(name: str, texts: list[list[str]]) -> None:
    tokenizer = TOKENIZERS[name]
    encoder = Encoder(tokenizer)
    for pieces in [*texts, *texts]:
        assert encoder.encode(pieces) == plain(tokenizer, pieces)


class Counting(Encoder):
    """Notes what is encoded."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        super().__init__(tokenizer)
        self.encoded: list[str] = []

    def _encoded(self, texts: list[str]) -> list[array[int]]:
        self.encoded += texts
        return super()._encoded(texts)


def turn(number: int) -> str:
    return f"<|start|>user {number} {SENTENCES[0] * 30}<|end|>"


def test_of_a_longer_conversation_only_what_is_new_is_encoded() -> None:
    encoder = Counting(byte_level())
    encoder.encode(["".join(map(turn, range(5))) + "<|start|>assistant"])
    encoder.encoded.clear()
    encoder.encode(["".join(map(turn, range(6))) + "<|start|>assistant"])
    assert "".join(encoder.encoded) == f"<|end|>{turn(5)}<|start|>assistant"


def test_a_control_token_that_depends_on_its_surroundings_is_not_cut_at() -> None:
    tokenizer = tokenizers.Tokenizer.from_str(byte_level().to_str())
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    encoder = Counting(tokenizer)
    text = "".join(map(turn, range(3)))
    for _ in range(2):
        assert encoder.encode([text]) == plain(tokenizer, [text])
    assert encoder.encoded == [text, text]
