"""Who may hold an idempotency key, decided by what the store has of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.stored.answers import Answer
from sidecar.stored.claims import MOST_EARLIER, NOBODY, Claim, Held, Key, Refused
from tests.core.stored.kit import OWNER, data_key

CLAIM = Claim("id", OWNER, "dk_1", "asked", "second")
RUNNING = Key("asked", "first", "w1", (), answered=False, ended=False)
ANSWERED = replace(RUNNING, answered=True)
FREE = RUNNING.let_go(given_back=True)


@pytest.mark.parametrize(
    ("key", "alive", "outcome"),
    [
        (RUNNING, {"w1"}, Refused.RUNNING),
        (replace(RUNNING, request="other"), {"w1"}, Refused.MISMATCH),
        # Its worker is dead, its time is over, or it was let go: the next try is as the first, but for what it cost.
        (RUNNING, set(), Held(("first",))),
        (replace(RUNNING, ended=True), {"w1"}, Held(("first",))),
        (FREE, {"w1"}, Held(("first",))),
        (replace(FREE, request="other"), {"w1"}, Held()),
        (replace(FREE, ended=True), {"w1"}, Held()),
        (replace(RUNNING, request="other"), set(), Held()),
        (replace(RUNNING, earlier=("zeroth",)), set(), Held(("zeroth", "first"))),
        (ANSWERED, {"w1"}, Refused.ANSWERED),
        (ANSWERED, set(), Refused.ANSWERED),
        (replace(ANSWERED, request="other"), set(), Refused.MISMATCH),
        (replace(ANSWERED, ended=True), {"w1"}, Held()),
        (replace(ANSWERED, ended=True, request="other"), {"w1"}, Held()),
    ],
)
def test_one_holds_a_key_at_a_time(key: Key, alive: set[str], outcome: Held | Refused) -> None:
    assert key.judge(CLAIM, alive) == outcome


@given(st.lists(st.booleans(), max_size=4 * MOST_EARLIER))
def test_who_holds_a_key_holds_it_again_and_what_came_before_has_a_bound(given_back: list[bool]) -> None:
    key = RUNNING
    for number, cost in enumerate(given_back):
        claim = replace(CLAIM, attempt=f"a{number}")
        key = key.let_go(given_back=cost)
        assert key.worker == NOBODY
        held = key.judge(claim, {"w1"})
        assert isinstance(held, Held)
        key = key.taken_by(claim, held, "w1")
        assert key.judge(claim, set()) == held
    names = ["first", *(f"a{number}" for number in range(len(given_back)))]
    assert list(key.earlier) == [name for name, cost in zip(names, given_back, strict=False) if cost][-MOST_EARLIER:]


@given(
    st.integers(200, 599),
    st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3),
    st.binary(max_size=99),
)
def test_an_answer_comes_back_as_it_was(status: int, headers: dict[str, str], body: bytes) -> None:
    answer = Answer(status, headers, body)
    assert Answer.unpack(answer.pack()) == answer


def test_events_are_kept_in_little_room() -> None:
    event = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":%d}\n\n'
    answer = Answer(200, {}, b"".join(event % number for number in range(4_000)))
    assert len(answer.pack()) < len(answer.body) / 10


@given(st.lists(st.binary(max_size=3), max_size=4), st.lists(st.binary(max_size=3), max_size=4))
def test_a_digest_tells_lists_apart_and_keys(one: list[bytes], other: list[bytes]) -> None:
    assert (data_key().digest(*one) == data_key().digest(*other)) is (one == other)
    assert data_key().digest(*one) != data_key(1).digest(*one)
