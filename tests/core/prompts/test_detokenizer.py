"""Incremental detokenization: any split of the ids gives the same text, and never half a character."""

from collections.abc import Callable

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.prompts.detokenizer import ByteLevelDetokenizer, Detokenizer, WindowDetokenizer
from sidecar.prompts.tokenizer import Tokenizer
from tests.core.prompts.chat_models import SENTENCES, SPECIAL, byte_fallback, byte_level
from tests.core.splits import split_at

Build = Callable[[], tokenizers.Tokenizer]
VOCABULARIES: dict[str, Build] = {"byte level": byte_level, "byte fallback": byte_fallback}
vocabulary = pytest.mark.parametrize("build", VOCABULARIES.values(), ids=VOCABULARIES.keys())
texts = st.text(max_size=40) | st.lists(st.sampled_from([*SENTENCES, "😀", "狐", "é", " ", "\n"]), max_size=4).map(
    "".join
)
cuts = st.lists(st.integers(0, 200), max_size=8)


def ids_of(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def feed_all(detokenizer: Detokenizer, pieces: list[list[int]]) -> list[str]:
    return [*map(detokenizer.feed, pieces), detokenizer.end()]


def test_each_vocabulary_has_its_detokenizer() -> None:
    assert isinstance(Tokenizer(byte_level()).detokenizer(), ByteLevelDetokenizer)
    assert isinstance(Tokenizer(byte_fallback()).detokenizer(), WindowDetokenizer)


@vocabulary
@given(text=texts, positions=cuts)
def test_any_split_gives_the_text_of_the_whole(build: Build, text: str, positions: list[int]) -> None:
    tokenizer = build()
    ids = ids_of(tokenizer, text)
    pieces = feed_all(Tokenizer(tokenizer).detokenizer(), split_at(ids, positions))
    assert "".join(pieces) == tokenizer.decode(ids, skip_special_tokens=True)


@given(st.lists(st.integers(0, 500), max_size=40), cuts)
@example([172, 97], [])
def test_bytes_that_are_not_utf_8_come_as_the_decoder_writes_them(ids: list[int], positions: list[int]) -> None:
    pieces = feed_all(Tokenizer(byte_level()).detokenizer(), split_at(ids, positions))
    whole = byte_level().decode(ids)
    # An unfinished character at the end is dropped; half a surrogate counts twice with the decoder.
    assert "".join(pieces) in (whole, whole.removesuffix("\ufffd"), whole.removesuffix("\ufffd\ufffd"))


@given(
    st.lists(st.integers(0, 257) | st.sampled_from([0xE2, 0x80, 0xA2, 0xF0, 0x9F]).map(lambda b: b + 2), max_size=40)
)
def test_no_ids_make_a_detokenizer_fail_or_lose_the_text_after_them(ids: list[int]) -> None:
    text = "a quick fox"
    pieces = feed_all(Tokenizer(byte_fallback()).detokenizer(), [ids, ids_of(byte_fallback(), text)])
    assert "".join(pieces).endswith(text)


@vocabulary
@pytest.mark.parametrize("text", ["🦀", "🦀🐙", "鯨が", "a é ü"])
def test_a_character_split_over_tokens_comes_whole(build: Build, text: str) -> None:
    tokenizer = build()
    ids = ids_of(tokenizer, text)
    assert len(ids) > len(text)
    pieces = feed_all(Tokenizer(tokenizer).detokenizer(), [[token_id] for token_id in ids])
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)


@vocabulary
def test_a_character_that_is_never_finished_is_dropped(build: Build) -> None:
    tokenizer = build()
    pieces = feed_all(Tokenizer(tokenizer).detokenizer(), [ids_of(tokenizer, "ok🦀")[:-1]])
    assert "".join(pieces) == "ok"


def test_bytes_that_are_no_character_become_one_replacement() -> None:
    tokenizer = byte_level()
    half = ids_of(tokenizer, "🦀")[:-1]
    assert feed_all(Tokenizer(tokenizer).detokenizer(), [half, ids_of(tokenizer, "a")]) == ["", "\ufffda", ""]


@vocabulary
def test_special_tokens_have_no_text(build: Build) -> None:
    tokenizer = build()
    end = tokenizer.token_to_id(SPECIAL[0])
    assert end is not None
    ids = [end, *ids_of(tokenizer, "a"), end, *ids_of(tokenizer, "b"), end]
    assert "".join(feed_all(Tokenizer(tokenizer).detokenizer(), [ids])) == "ab"


def test_added_tokens_that_are_not_special_have_text() -> None:
    ids = ids_of(byte_level(), "<think>x</think>naïve™")
    assert "".join(feed_all(Tokenizer(byte_level()).detokenizer(), [ids])) == "<think>x</think>naïve™"


@vocabulary
@pytest.mark.parametrize("unknown", [-1, 10**6])
def test_ids_outside_the_vocabulary_have_no_text(build: Build, unknown: int) -> None:
    assert Tokenizer(build()).detokenizer().feed([unknown, *ids_of(build(), "a"), unknown]) == "a"
