"""The fair queue: each owner's entries in order, owners in turns, never more than the bound, and room for everyone."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sidecar.fairness import FairQueue, QueueFullError

OWNERS = st.sampled_from("abcdefgh")
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


def test_an_owner_alone_may_have_all_places_and_then_gives_up_its_newest() -> None:
    queue: FairQueue[int] = FairQueue(4)
    assert [queue.add("a", entry) for entry in range(4)] == [None] * 4
    with pytest.raises(QueueFullError):
        queue.add("a", 4)
    assert [queue.add("b", 10), queue.add("b", 11)] == [3, 2]
    for owner in "ab":
        with pytest.raises(QueueFullError):
            queue.add(owner, 12)
    assert [queue.pop() for _ in range(4)] == [0, 10, 1, 11]


def test_whoever_had_the_last_turn_waits_behind_a_newcomer() -> None:
    queue: FairQueue[str] = FairQueue(9)
    for entry in ("a0", "a1", "a2"):
        queue.add("a", entry)
    assert queue.pop() == "a0"
    queue.add("b", "b0")
    queue.add("c", "c0")
    assert [queue.pop() for _ in range(4)] == ["b0", "c0", "a1", "a2"]


class Checked(RuleBasedStateMachine):
    """Anything that may happen to a small queue, beside what each owner should have in it."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: FairQueue[int] = FairQueue(6)
        self.entries = count()
        self.waiting: dict[str, list[int]] = {}
        # How many turns others have had since an owner began to wait, or had its last turn.
        self.passed: dict[str, int] = {}

    @property
    def length(self) -> int:
        return sum(map(len, self.waiting.values()))

    @rule(owner=OWNERS)
    def add(self, owner: str) -> None:
        entry = next(self.entries)
        most = max(self.waiting, key=lambda other: len(self.waiting[other]), default=owner)
        mine = len(self.waiting.get(owner, ()))
        if self.length < 6:
            assert self.queue.add(owner, entry) is None
        elif len(self.waiting[most]) - 1 > mine:
            displaced = self.queue.add(owner, entry)
            (loser,) = (other for other, entries in self.waiting.items() if displaced in entries)
            assert len(self.waiting[loser]) == len(self.waiting[most])
            assert self.waiting[loser].pop() == displaced
        else:
            with pytest.raises(QueueFullError):
                self.queue.add(owner, entry)
            return
        self.waiting.setdefault(owner, []).append(entry)
        self.passed.setdefault(owner, 0)

    @precondition(lambda self: self.waiting)
    @rule()
    def pop(self) -> None:
        entry = self.queue.pop()
        (owner,) = (owner for owner, entries in self.waiting.items() if entry in entries)
        assert self.waiting[owner].pop(0) == entry, "not the owner's first"
        for other in self.passed:
            self.passed[other] += 1
        self.passed[owner] = 0
        self._forget(owner)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        owner = data.draw(st.sampled_from(sorted(self.waiting)))
        entry = data.draw(st.sampled_from(self.waiting[owner]))
        self.queue.discard(owner, entry)
        self.waiting[owner].remove(entry)
        self._forget(owner)

    def _forget(self, owner: str) -> None:
        if not self.waiting[owner]:
            del self.waiting[owner], self.passed[owner]

    @invariant()
    def nobody_starves(self) -> None:
        assert all(passed <= 6 for passed in self.passed.values())

    @invariant()
    def the_length_is_right(self) -> None:
        assert len(self.queue) == self.length <= 6


test_whatever_happens_the_queue_is_bounded_ordered_and_fair = Checked.TestCase
