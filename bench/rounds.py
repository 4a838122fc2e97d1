"""All candidates on all loads, round by round, so that a change of the machine's mood meets them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from bench.candidates import Running
from bench.comparison import OTHERS, Results
from bench.figures import NothingMeasuredError
from bench.loads import Load
from bench.measure import Bench, Measurement

# What a run takes besides its load, in seconds: starting and ending the driver, and streams that fall behind.
_OVERHEAD = 0.7


def measure_all(
    bench: Bench,
    running: Mapping[str, Running],
    loads: Sequence[Load],
    rounds: int,
    deadline: float,
    progress: Callable[[str], None],
) -> Results:
    """Play every load through every candidate in every round.

    A run that others disturbed is played once again if that leaves time for all the rest before ``deadline``, in
    seconds of CLOCK_MONOTONIC; the less disturbed one counts.

    Raises:
        NothingMeasuredError: a candidate answered no request of a load.
    """
    results: Results = {load.name: {name: [] for name in running} for load in loads}
    left = rounds * len(running) * sum(map(_seconds, loads))
    for number in range(rounds):
        for load in loads:
            progress(f"Round {number + 1} of {rounds}: {load.name}")
            for name, candidate in running.items():
                left -= _seconds(load)
                best = _measure(bench, name, candidate, load)
                if best.others > OTHERS and time.monotonic() + left + _seconds(load) < deadline:
                    best = min(best, _measure(bench, name, candidate, load), key=_others)
                results[load.name][name].append(best)
    return results


def warm_up(bench: Bench, running: Mapping[str, Running], load: Load) -> None:
    """Let every candidate open its connections and fill its caches.

    Raises:
        NothingMeasuredError: a candidate answered no request.
    """
    for name, candidate in running.items():
        _measure(bench, name, candidate, load)


def _measure(bench: Bench, name: str, candidate: Running, load: Load) -> Measurement:
    try:
        return bench.measure(candidate.node, load, candidate.idle)
    except NothingMeasuredError as error:
        raise NothingMeasuredError(f"{load.name}, {name}: {error}") from error


def _seconds(load: Load) -> float:
    return load.steady[1] + _OVERHEAD


def _others(measurement: Measurement) -> float:
    return measurement.others
