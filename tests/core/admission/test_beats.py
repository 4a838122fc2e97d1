"""Who watches beats: a worker is lost when it has been silent for a minute while all others could be heard."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.admission.beats import LOST_SECONDS, Watch

PAUSE = 15.0


def watch_for(seconds: int, beats: dict[str, list[int]]) -> list[str]:
    """What is seen at the end of looks that are 5 seconds apart; ``beats`` gives each worker's at every look."""
    watch, lost = Watch(PAUSE), list[str]()
    for number in range(seconds // 5 + 1):
        lost = watch.look({name: told[min(number, len(told) - 1)] for name, told in beats.items()}, number * 5.0)
    return lost


def test_a_worker_that_is_silent_for_a_minute_is_lost() -> None:
    assert watch_for(55, {"dead": [4], "alive": list(range(100))}) == []
    assert watch_for(60, {"dead": [4], "alive": list(range(100))}) == ["dead"]


def test_one_that_beats_again_is_not() -> None:
    assert watch_for(70, {"slow": [4] * 10 + [5] * 100}) == []


def test_one_that_begins_again_with_another_number_is_not() -> None:
    assert watch_for(60, {"forgotten": [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1]}) == []


def test_after_a_failure_the_minute_begins_anew() -> None:
    watch = Watch(PAUSE)
    for at in range(0, 60, 5):
        assert watch.look({"w": 1}, float(at)) == []
    watch.interrupted()
    for at in range(60, 120, 5):
        assert watch.look({"w": 1}, float(at)) == []
    assert watch.look({"w": 1}, 120.0) == ["w"]


def test_after_a_pause_of_its_own_the_minute_begins_anew() -> None:
    watch = Watch(PAUSE)
    assert watch.look({"w": 1}, 0.0) == []
    assert watch.look({"w": 1}, 61.0) == []


def test_a_clock_that_goes_back_makes_nobody_dead() -> None:
    watch = Watch(PAUSE)
    assert watch.look({"w": 1}, 1000.0) == []
    assert watch.look({"w": 1}, 10.0) == []
    assert watch.look({"w": 1}, 20.0) == []


@given(st.lists(st.tuples(st.floats(0.1, 30), st.sampled_from(["beat", "still", "failure"])), max_size=60))
def test_nobody_is_lost_who_was_not_seen_silent_for_a_whole_minute_without_a_gap(
    looks: list[tuple[float, str]],
) -> None:
    watch, now, beat = Watch(PAUSE), 0.0, 0
    silent_since, last = None, None
    for pause, what in looks:
        now += pause
        if what == "failure":
            watch.interrupted()
            silent_since = last = None
            continue
        beat += what == "beat"
        if what == "beat" or silent_since is None or (last is not None and now - last > PAUSE):
            silent_since = now
        last = now
        expected = ["w"] if now - silent_since >= LOST_SECONDS else []
        assert watch.look({"w": beat}, now) == expected
