"""The fair queue: each owner's entries in order, owners in turns, never more than the bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.killable import QueueFullError
from sidecar.killable.fair_queue import FairQueue

ENTRIES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1000)), max_size=30)


def drain(queue: FairQueue[tuple[str, int]]) -> list[tuple[str, int]]:
    return [queue.pop() for _ in range(len(queue))]


@given(ENTRIES)
def test_every_entry_comes_in_its_owners_order(entries: list[tuple[str, int]]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue(30)
    for entry in entries:
        queue.add(entry[0], entry)
    out = drain(queue)
    for owner in "abc":
        assert [entry for entry in out if entry[0] == owner] == [entry for entry in entries if entry[0] == owner]
    with pytest.raises(IndexError):
        queue.pop()


@given(ENTRIES)
def test_no_owner_has_a_second_turn_before_another_that_waits_has_had_one(entries: list[tuple[str, int]]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue(30)
    for entry in entries:
        queue.add(entry[0], entry)
    owners = [owner for owner, _ in drain(queue)]
    for at, owner in enumerate(owners):
        if owner in owners[at + 1 :]:
            between = owners[at + 1 : owners.index(owner, at + 1)]
            assert set(between) == set(owners[at + 1 :]) - {owner}


@given(ENTRIES, st.data())
def test_what_is_taken_out_does_not_come(entries: list[tuple[str, int]], data: st.DataObject) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue(30)
    for entry in entries:
        queue.add(entry[0], entry)
    gone = data.draw(st.lists(st.sampled_from(entries)) if entries else st.just([]))
    left = list(entries)
    for entry in gone:
        queue.discard(entry[0], entry)
        if entry in left:
            left.remove(entry)
    queue.discard("nobody", ("nobody", 1))
    assert len(queue) == len(left)
    assert sorted(drain(queue)) == sorted(left)


def test_more_than_the_bound_is_refused_until_there_is_room() -> None:
    queue: FairQueue[int] = FairQueue(2)
    queue.add("a", 1)
    queue.add("b", 2)
    with pytest.raises(QueueFullError):
        queue.add("c", 3)
    queue.pop()
    queue.add("c", 3)
    assert [queue.pop(), queue.pop()] == [2, 3]
