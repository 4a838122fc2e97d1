"""Leases, whatever the clock does: never more than was left, or than their most, and never longer than they last."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from sidecar.admission.balances import RATES, Balances, Key, Kind, Level, Limit
from sidecar.admission.buckets import MICRO
from sidecar.admission.decide import Applicant, decide
from sidecar.admission.entries import Admitted, ReservationRequest
from sidecar.admission.leases import Flow, Lease, left_in, most, moved, seen_as, slice_of, suffices

SECOND = 1_000_000
NOW = 1_796_083_200 * SECOND

kinds: st.SearchStrategy[Kind] = st.sampled_from(("requests", "tokens", "image_bytes", "concurrent", "quota"))
limits = st.builds(lambda kind, limit: Limit(Key("o", "m", kind), limit), kinds, st.integers(0, 10**12))
seconds = st.integers(1, 30)
units = st.integers(0, 10**9)


def scale(limit: Limit) -> int:
    return MICRO if limit.key.kind in RATES else 1


@given(limits, st.integers(-(10**18), 10**18), units, seconds)
def test_a_slice_is_at_most_what_is_left_and_at_least_what_is_wanted(
    limit: Limit, left: int, wanted: int, seconds: int
) -> None:
    size = slice_of(limit, left, wanted, seconds)
    assert 0 <= size <= max(0, left) // 8
    assert size <= most(limit, seconds) // 2
    assert size == 0 or size >= wanted * scale(limit)


@given(limits, seconds)
def test_a_rate_is_leased_for_no_longer_than_it_takes_to_fill_up_again(limit: Limit, seconds: int) -> None:
    assert most(limit, seconds) <= limit.limit * scale(limit) // 8
    if limit.key.kind in RATES:
        assert most(limit, seconds) * 60 <= limit.limit * MICRO * seconds


@given(st.integers(10**6, 10**9), st.integers(1, 200), seconds)
def test_however_many_take_slices_some_is_left_for_the_next(limit: int, workers: int, seconds: int) -> None:
    of = Limit(Key("o", "m", "concurrent"), limit)
    left = limit
    for _ in range(workers):
        size = slice_of(of, left, 0, seconds)
        left -= size
        assert left >= 7 * size


@given(kinds, st.integers(0, 10**4), st.tuples(*[st.integers(0, 500)] * 4), seconds)
def test_a_lease_that_suffices_covers_all_and_stays_below_its_most(
    kind: Kind, size: int, moves: tuple[int, int, int, int], seconds: int
) -> None:
    limit = Limit(Key("o", "m", kind), size)
    level, given_back, taken, wanted = moves
    after = level + given_back - taken - wanted
    lease = Lease(level * scale(limit), NOW + 1, Level(0, 0))
    expected = after >= 0 and after * scale(limit) <= most(limit, seconds)
    # Nothing is cut off on the way: neither a bucket's capacity nor a count below 0 is met.
    expected &= level + given_back <= size
    assert suffices(lease, limit, Flow(given_back, taken, wanted), NOW, seconds) is expected


@given(
    st.integers(-100 * SECOND, 100 * SECOND), seconds, st.sampled_from(["requests", "tokens", "concurrent", "quota"])
)
def test_a_lease_is_used_while_it_lasts_and_not_when_the_clock_has_jumped(jump: int, seconds: int, kind: Kind) -> None:
    limit = Limit(Key("o", "m", kind), 10**6)
    lease = Lease(most(limit, seconds) // 2, NOW + seconds * SECOND, Level(0, 0))
    lasts = 0 <= jump < seconds * SECOND
    assert suffices(lease, limit, Flow(wanted=1), NOW + jump, seconds) is lasts


@given(limits, st.integers(0, 10**15), st.integers(0, 2 * NOW))
def test_a_lease_that_is_seen_as_a_balance_has_that_much_left(limit: Limit, level: int, now: int) -> None:
    assert left_in(limit, seen_as(Lease(level, 0, Level(0, 0)), limit, now)) == level


@given(limits, st.integers(0, 10**15), st.integers(0, 10**15))
def test_what_is_moved_to_a_lease_is_missing_in_the_balance(limit: Limit, level: int, amount: int) -> None:
    before = Level(level, NOW)
    after = moved(limit.key, before, -amount)
    assert left_in(limit, after) == left_in(limit, before) - amount
    assert moved(limit.key, after, amount) == before


@given(st.lists(st.integers(1, 500), min_size=1, max_size=20), units, seconds)
def test_whoever_is_covered_is_admitted(tokens: list[int], level: int, seconds: int) -> None:
    kinds: tuple[Kind, ...] = ("concurrent", "requests", "tokens", "quota")
    found = [Limit(Key("o", "m", kind), 10**6) for kind in kinds]
    wanted = {"concurrent": len(tokens), "requests": len(tokens), "tokens": sum(tokens), "quota": sum(tokens)}
    held = {limit.key: Lease(level * scale(limit), NOW + 1, Level(0, 0)) for limit in found}
    for limit in found:
        assume(suffices(held[limit.key], limit, Flow(wanted=wanted[limit.key.kind]), NOW, seconds))
    balances = Balances({limit.key: seen_as(held[limit.key], limit, NOW) for limit in found}, NOW)
    for number, count in enumerate(tokens):
        asked = ReservationRequest(f"r{number}", "", "o", "m", "n", "w", count, 0)
        assert isinstance(decide(Applicant(asked, found), balances), Admitted)
    for limit in found:
        left = level - wanted[limit.key.kind]
        assert left_in(limit, balances.level(limit.key)) == left * scale(limit)


def test_clients_are_told_of_the_lease_and_of_the_rest() -> None:
    limit = Limit(Key("o", "m", "requests"), 60)
    rests = {limit.key: Level(40 * MICRO, NOW - 5 * SECOND)}
    balances = Balances({limit.key: Level(4 * MICRO, NOW)}, NOW, rests)
    assert balances.bucket(limit).left == 4
    # A request a second has filled up since.
    assert balances.told(limit).left == 49
    assert balances.told(limit).until_full == 11 * SECOND
