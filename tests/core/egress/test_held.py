"""The bytes that a worker holds: bounded together, and shared by those on whose behalf they are held."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.egress.held import HeldBytes
from sidecar.responses.errors import ApiError

LIMIT, REQUEST = 100, 20


def test_an_owner_s_requests_leave_as_much_as_they_have() -> None:
    held = HeldBytes(LIMIT)
    with ExitStack() as stack:
        shares = [stack.enter_context(held.share("greedy", REQUEST)) for _ in range(3)]
        for share, count in zip(shares, (20, 20, 10), strict=True):
            share.take(count)
        with pytest.raises(ApiError) as refusal:
            shares[2].take(1)
        assert (refusal.value.code, refusal.value.status) == ("capacity_unavailable", 503)
        stack.enter_context(held.share("other", REQUEST)).take(REQUEST)
        shares[2].take(-1)
    assert held.count == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, REQUEST)), max_size=40))
def test_whatever_one_owner_takes_another_has_room_for_a_request(takes: list[tuple[str, int]]) -> None:
    held = HeldBytes(LIMIT)
    with ExitStack() as stack:
        for owner, count in takes:
            try:
                stack.enter_context(held.share(owner, REQUEST)).take(count)
            except ApiError as error:
                assert error.code == "capacity_unavailable"
        assert held.count <= LIMIT
        if len({owner for owner, _ in takes}) <= 1:
            stack.enter_context(held.share("other", REQUEST)).take(REQUEST)
    assert held.count == 0
