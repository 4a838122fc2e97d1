"""Whether a prompt fits: told with bounded work, and never against a prompt that does."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers, processors

from sidecar.prompts import budget
from sidecar.prompts.budget import is_far_too_long, surely_exceeds
from sidecar.prompts.chat_model import ChatModel
from sidecar.prompts.guard import CUT
from sidecar.prompts.renderer import PromptRenderer
from sidecar.prompts.tokenizer import Tokenizer
from sidecar.responses.errors import ApiError
from tests.core.prompts.chat_models import PLAIN, SENTENCES, byte_fallback, byte_level
from tests.core.surfaces.node_requests import accept

SLICE = 64


def word_pieces() -> tokenizers.Tokenizer:
    """Words made of pieces; a word of more than 100 characters is one unknown token."""
    pieces = ["[UNK]", *"abcdefghijklmnopqrstuvwxyz.,", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece({piece: at for at, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def unigrams() -> tokenizers.Tokenizer:
    """Pieces of whole words with ▁ before them, which the normalizer also puts before each text."""
    pieces = [("<unk>", -9.0), ("▁", -2.0), ("▁the", -2.0), ("ab", -2.0), *((letter, -4.0) for letter in "abcdefghij")]
    tokenizer = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return tokenizer


def three_digits() -> tokenizers.Tokenizer:
    """A byte-level vocabulary that cuts as current ones do, normalizes, and begins each text with a token."""
    tokenizer = tokenizers.Tokenizer.from_str(byte_level().to_str())
    pattern = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    cuts = [
        pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


KINDS = {make.__name__: Tokenizer(make()) for make in (byte_level, byte_fallback, word_pieces, unigrams, three_digits)}

letters = st.sampled_from(["a", "ab", " ", "\n", "1", "12345", "é", "e\u0301", "😀", "the", "x" * 90, " " * 40, CUT])
texts = st.lists(letters | st.sampled_from(SENTENCES), max_size=40).map("".join) | st.builds(
    lambda letter, count: letter * count, letters, st.integers(1, 600)
)


class Encoder:
    """An ``encode`` that notes how much it was given."""

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        self.encode = encode
        self.tokens = 0
        self.longest = 0

    def __call__(self, text: str) -> list[int]:
        ids = self.encode(text)
        self.tokens += len(ids)
        self.longest = max(self.longest, len(text))
        return ids


@pytest.fixture
def small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets at the size of the texts here, so that slices are small and many."""
    monkeypatch.setattr(budget, "_SLICE", SLICE)
    monkeypatch.setattr(budget, "_FEW_TOKENS", 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("small_budgets")
def test_no_prompt_that_fits_is_refused(kind: str) -> None:
    tokenizer = KINDS[kind]

    @given(texts)
    def holds(text: str) -> None:
        tokens = len(tokenizer.encode(text))
        assert not surely_exceeds(text, tokens, tokenizer.encode)

    holds()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("small_budgets")
def test_work_is_bounded_by_the_context(kind: str) -> None:
    tokenizer = KINDS[kind]

    @given(texts, st.integers(1, 400))
    def holds(text: str, context: int) -> None:
        encode = Encoder(tokenizer.encode)
        refused = surely_exceeds(text, context, encode)
        slices = -(-len(text) // SLICE)
        # The last slice may be all tokens, a few to each character.
        assert encode.tokens <= context + budget._TOKENS_OF_A_CUT * slices + 4 * SLICE
        assert encode.longest <= SLICE
        if not refused:
            most = max(budget._FEW_TOKENS, 2 * context) + budget._TOKENS_OF_A_CUT * slices
            assert len(tokenizer.encode(text)) <= most

    holds()


@pytest.mark.parametrize("text", ["a ", "1", " ", "\n", "😀", "a", "x9", "<|end|>", f"{CUT}a", "Ω"])
def test_ten_megabytes_are_refused_with_a_slice_s_work(text: str) -> None:
    encode = Encoder(KINDS["byte_level"].encode)
    assert surely_exceeds(text * (10 * 2**20 // len(text.encode())), 8192, encode)
    assert encode.tokens == 0


@pytest.mark.parametrize("text", ["a ", "1", "😀", "x9", f"{CUT}a"])
def test_a_text_of_plausible_length_is_counted_until_it_is_too_long(text: str) -> None:
    context = 16 * 1024
    encode = Encoder(KINDS["byte_level"].encode)
    assert surely_exceeds(text * (256 * 1024 // len(text)), context, encode)
    assert context < encode.tokens < context + 5 * budget._SLICE
    assert encode.longest == budget._SLICE


def test_an_ordinary_prompt_is_encoded_once() -> None:
    encode = Encoder(KINDS["byte_level"].encode)
    assert not surely_exceeds("word " * 10_000, 8192, encode)
    assert not surely_exceeds("word " * 20_000, 100_000, encode)
    assert encode.tokens == 0


@pytest.mark.parametrize(
    ("value", "long"),
    [
        ("x" * 262_144, False),
        ("x" * 262_145, True),
        ({"role": "user", "content": ["x" * 262_100, {"y" * 40: 1, "z": None}]}, True),
        ({"role": "user", "content": ["x" * 262_000, {"y" * 40: 1, "z": None}]}, False),
    ],
)
def test_length_is_that_of_all_texts(value: object, long: bool) -> None:
    assert is_far_too_long([value], 100) is long
    assert not is_far_too_long([value], 100_000)


@pytest.mark.parametrize("piece", ["a ", "<|end|>", "1"])
def test_a_prompt_far_too_long_is_neither_guarded_nor_rendered(piece: str) -> None:
    source = "{% if (messages | length) > 2 %}{{ raise_exception('rendered') }}{% endif %}" + PLAIN
    renderer = PromptRenderer(ChatModel.of(Tokenizer(byte_level(), template_source=source)))
    items = [{"role": "user", "content": piece * 100_000}] * 5
    with pytest.raises(ApiError) as refusal:
        renderer.render(accept(input=items), now=datetime(2026, 3, 4, tzinfo=UTC), context_length=1000)
    assert refusal.value.code == "context_length_exceeded"
