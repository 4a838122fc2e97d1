"""Ids: OpenAI's prefixes, one lower-case ULID per response."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.responses.ids import ResponseIds, ulid


def test_a_ulid_follows_the_published_example() -> None:
    # The example of the ULID specification: 1469918176385 ms is written 01ARYZ6S41.
    assert ulid(1469918176385, bytes(10)) == "01aryz6s41" + "0" * 16


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_ulids_sort_by_time(early: int, late: int, randomness: bytes) -> None:
    first, second = ulid(early, randomness), ulid(late, randomness)
    assert len(first) == 26
    assert (first < second) == (early < late)


def test_randomness_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="10 random bytes"):
        ulid(0, b"short")


def test_items_carry_their_response_and_index() -> None:
    ids = ResponseIds(ulid(1, bytes(10)))
    assert ids.response == f"resp_{ids.ulid}"
    assert ids.item("message", 0) == f"msg_{ids.ulid}_0"
    assert ids.item("reasoning", 1) == f"rs_{ids.ulid}_1"
    assert ids.item("function_call", 12) == f"fc_{ids.ulid}_12"


def test_every_call_has_an_id_of_its_own() -> None:
    one, other = ResponseIds(ulid(1, bytes(10))), ResponseIds(ulid(1, bytes(9) + b"x"))
    calls = [ids.call(index) for ids in (one, other) for index in range(3)]
    assert len(set(calls)) == 6
    assert all(call.startswith("call_") and len(call) == 29 for call in calls)
