"""The tokens of a text that grows are those of the whole text, and no step counts more than a chunk."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.backends.triton.contracts import running_count
from sidecar.backends.triton.contracts.running_count import CHUNK, RunningCount
from sidecar.prompts.tokenizer import Tokenizer
from tests.core.prompts.chat_models import SENTENCES, byte_fallback, byte_level

BYTES = Tokenizer(byte_level()).count
PIECES = Tokenizer(byte_fallback()).count

prose = st.lists(
    st.sampled_from(["word", "Wörter", "a", "print(x)", "12345", "don't", "\n", "\n\n", "  ", "<|end|>", *SENTENCES]),
    max_size=60,
).map(" ".join)
anything = (
    prose | st.text(max_size=200) | st.builds(lambda t, n: t * n, st.text(min_size=1, max_size=3), st.integers(1, 200))
)


def parts(text: str, sizes: Iterable[int]) -> Iterable[str]:
    for size in sizes:
        yield text[:size]
        text = text[size:]
    yield text


def total(count: Callable[[str], int], pieces: Iterable[str]) -> int:
    running = RunningCount(count)
    for piece in pieces:
        running.add(piece)
    return running.total()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_count, "CHUNK", 32)


@pytest.mark.usefixtures("small_chunks")
@given(prose.filter(lambda text: not any(character >= "\u4e00" for character in text)), st.lists(st.integers(1, 40)))
def test_prose_has_the_tokens_of_the_whole(text: str, sizes: list[int]) -> None:
    # In pieces of 32 characters a line of digits or signs may leave no place to cut; then a token or two are added.
    words = text.replace("  ", "")
    spare = sum(not running_count._QUIET_PLACE.match(words[at : at + 16]) for at in range(0, len(words), 16))
    assert 0 <= abs(total(BYTES, parts(text, sizes)) - BYTES(text)) <= 2 * spare


@pytest.mark.parametrize("count", [BYTES, PIECES])
@pytest.mark.usefixtures("small_chunks")
def test_any_text_has_about_the_tokens_of_the_whole(count: Callable[[str], int]) -> None:
    @given(anything, st.lists(st.integers(1, 40)))
    def holds(text: str, sizes: list[int]) -> None:
        assert abs(total(count, parts(text, sizes)) - count(text)) <= 4 * (len(text) // 16 + 1)

    holds()


@pytest.mark.parametrize("unit", ["word ", " ", "a", "😀", "\n", "1"])
def test_a_long_answer_is_counted_as_it_comes(unit: str) -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return BYTES(text)

    text = "".join(f"{unit * (1000 // len(unit))}{number}" for number in range(100))
    running = RunningCount(count)
    for at in range(0, len(text), 7):
        running.add(text[at : at + 7])
    assert len(text) - sum(counted) < CHUNK + 7
    assert abs(running.total() - BYTES(text)) <= 2 * len(counted)
    assert max(counted) <= CHUNK + 7
    assert sum(counted) == len(text)
    assert running.total() == running.total()


def test_english_is_counted_exactly() -> None:
    text = "\n".join(SENTENCES[:3] * 200)
    assert total(BYTES, parts(text, [5] * 10_000)) == BYTES(text)


def test_spaces_without_end_are_counted_once() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return BYTES(text)

    assert total(count, [" " * 3500] * 100) == 50 * BYTES(" " * 7000)
    assert counted == [7000, 0]
