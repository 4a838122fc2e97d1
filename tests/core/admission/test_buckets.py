"""Buckets, whatever the clock does: never above the capacity, never faster than the limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.admission.buckets import MICRO, Bucket

MINUTE = 60 * MICRO

limits = st.integers(0, 10**12)
times = st.integers(0, 2**52)
steps = st.lists(st.integers(1, 200 * MINUTE), max_size=20)


def full(limit: int, now: int = 0) -> Bucket:
    return Bucket(limit, limit * MICRO, now)


@given(limits, times, times, st.integers(-(10**12), 10**12))
def test_a_bucket_is_never_above_its_capacity(limit: int, before: int, now: int, left: int) -> None:
    bucket = Bucket(limit, left * MICRO, before).at(now)
    assert bucket.level <= bucket.capacity
    assert bucket.give_back(10**12).level <= bucket.capacity


@given(limits, times, times)
def test_what_is_taken_and_given_back_leaves_all_as_it_was(limit: int, before: int, now: int) -> None:
    bucket = full(limit, before).at(now)
    assert bucket.take(limit).give_back(limit) == bucket


@given(st.integers(1, 10**9), steps)
def test_looking_often_neither_gains_nor_loses(limit: int, waits: list[int]) -> None:
    often = once = full(limit).take(limit)
    now = 0
    for wait in waits:
        now += wait
        often = often.at(now)
        assert often.updated_at <= now
    once = once.at(now)
    # Less than what a microsecond brings, for each look.
    assert 0 <= once.level - often.level <= (limit // 60 + 2) * (len(waits) + 1)


@given(st.integers(1, 10**6), st.lists(st.tuples(st.integers(0, 2 * MINUTE), st.integers(0, 10**6)), max_size=40))
def test_no_minute_sees_more_than_two_buckets(limit: int, wanted: list[tuple[int, int]]) -> None:
    bucket, now, taken = full(limit), 0, list[tuple[int, int]]()
    for wait, units in wanted:
        now += wait
        bucket = bucket.at(now)
        if bucket.wait_for(units) == 0:
            bucket = bucket.take(units)
            taken.append((now, units))
    for begin, _ in taken:
        assert sum(units for at, units in taken if begin <= at < begin + MINUTE) <= 2 * limit


@given(st.integers(1, 10**9), times, times)
def test_a_jump_of_the_clock_gives_at_most_one_bucket(limit: int, before: int, now: int) -> None:
    assert full(limit, before).take(limit).at(now).level <= limit * MICRO


@given(st.integers(1, 10**9), times, st.integers(1, 2**40))
def test_a_clock_that_went_back_gives_nothing_and_stops_nothing(limit: int, before: int, back: int) -> None:
    empty = full(limit, before).take(limit).at(before - back)
    assert empty.level == 0
    assert empty.at(before - back + MINUTE).level == limit * MICRO


@given(st.integers(1, 10**9), st.integers(-(10**9), 10**9), st.integers(1, 10**9))
def test_the_wait_that_is_told_is_long_enough_and_no_longer(limit: int, left: int, units: int) -> None:
    bucket = Bucket(limit, min(left, limit) * MICRO, 0)
    wait = bucket.wait_for(units)
    if units > limit:
        assert wait is None
        return
    assert wait is not None
    assert bucket.at(wait).wait_for(units) == 0
    assert wait == 0 or bucket.at(wait - 1).wait_for(units) != 0


@given(limits, times)
def test_a_full_bucket_waits_for_nothing(limit: int, now: int) -> None:
    assert full(limit, now).until_full == 0
    assert full(limit, now).left == limit


def test_a_limit_of_nothing_lets_nothing_through() -> None:
    bucket = Bucket(0, -5 * MICRO, 0).at(MINUTE)
    assert bucket.wait_for(1) is None
    assert (bucket.left, bucket.until_full) == (0, 0)
