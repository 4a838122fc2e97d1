"""The search for slow inputs finds what grows faster than its budget, and only that."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fuzz.slow import search
from tests.fuzz.slow.search import Search, Target


class Brackets(Target[str]):
    """Texts, whose brackets cost what is said and whose other letters cost nothing."""

    most_bytes = 500

    def __init__(self, exponent: int) -> None:
        self.exponent = exponent

    def seeds(self) -> Sequence[str]:
        return ["a"]

    def changed(self, old: str, other: str, chance: random.Random) -> str:
        return chance.choice((old + chance.choice("abc("), old + other, old[: len(old) // 2] or "a"))

    def text(self, input: str) -> str:
        return input

    def size(self, input: str) -> int:
        return len(input)

    def share(self, input: str) -> float:
        return float(input.count("(") ** self.exponent / (10 * len(input)))


@pytest.mark.parametrize(("exponent", "dear"), [(1, False), (2, True)])
def test_what_is_not_linear_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exponent: int, dear: bool
) -> None:
    monkeypatch.setattr(search, "limit", lambda: None)
    found = Search(Brackets(exponent), random.Random(1), tmp_path / "last")
    found.begin()
    for _ in range(600):
        found.step()
    assert any(each.share > 1 for each in found.dearest) is dear
    assert found.dearest[-1].size > 250
    assert all(len(each.input) <= Brackets.most_bytes for each in found.dearest)
    assert (tmp_path / "last").read_text()
