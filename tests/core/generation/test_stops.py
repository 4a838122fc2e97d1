"""Stop strings: found over any split, held back only while undecided."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.generation.stops import StopStrings
from tests.core.splits import split_at


def run(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    automaton = StopStrings(stops)
    text = "".join(map(automaton.feed, pieces))
    return text + automaton.end(), automaton.matched


@pytest.mark.parametrize(
    ("stops", "pieces", "text", "matched"),
    [
        ([], ["any", "thing"], "anything", False),
        (["<|im_end|>"], ["done", "<|im_", "end|>"], "done", True),
        (["<|im_end|>"], ["done", "<|im_", "start|>"], "done<|im_start|>", False),
        (["<|im_end|>"], ["done<|im_"], "done<|im_", False),
        (["END"], ["an E", "N END here"], "an EN ", True),
        (["aab"], ["aa", "ab"], "a", True),
        (["abcd", "bc"], ["abc", "d"], "a", True),
        (["stop"], ["go stop", " and more"], "go ", True),
    ],
)
def test_an_answer_ends_before_its_stop_string(stops: list[str], pieces: list[str], text: str, matched: bool) -> None:
    assert run(stops, pieces) == (text, matched)


@given(
    st.lists(st.text("ab|", min_size=1, max_size=4), max_size=3),
    st.text("ab|c", max_size=30),
    st.lists(st.integers(0, 30), max_size=8),
)
def test_any_split_gives_the_same_text(stops: list[str], text: str, cuts: list[int]) -> None:
    assert run(stops, split_at(text, cuts)) == run(stops, [text])


@given(st.text("ab", max_size=30))
def test_hold_back_is_shorter_than_the_longest_stop(text: str) -> None:
    automaton = StopStrings(["aab", "bbbb"])
    shown = "".join(map(automaton.feed, text))
    assert automaton.matched or len(text) - len(shown) < 4
