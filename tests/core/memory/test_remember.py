"""Results are remembered by the content of the text they were made of, and not for ever."""

from sidecar.memory import remembered


def counted(budget: int) -> tuple[list[str], object]:
    asked: list[str] = []

    @remembered(budget)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    return asked, length


def test_the_same_content_is_looked_at_once() -> None:
    asked, length = counted(10_000)
    assert callable(length)
    assert [length("abc"), length("ab" + "c"), length("é")] == [3, 3, 1]
    assert asked == ["abc", "é"]


def test_the_oldest_results_are_forgotten_first() -> None:
    asked, length = counted(3 * 1001)
    assert callable(length)
    for text in "abcadab":
        assert length(text) == 1
    assert asked == list("abcdb")


def test_a_text_above_the_budget_is_not_kept() -> None:
    asked, length = counted(1100)
    assert callable(length)
    long = "x" * 200
    assert [length("a"), length(long), length(long)] == [1, 200, 200]
    assert asked == ["a", long, long]
