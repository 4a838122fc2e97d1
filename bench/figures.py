"""What a run showed, in numbers."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.stamps import written_at


class NothingMeasuredError(Exception):
    """Every request of a run failed; the message counts the failures."""


@dataclass
class Observation:
    """One request as its client saw it; times are seconds of CLOCK_MONOTONIC, ticks those of :mod:`bench.stamps`."""

    started: float
    failure: str | None = "unfinished"
    ticks: list[int] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)

    def tokens_arrived(self, ticks: Sequence[int], now: float) -> None:
        """Note one event's tokens."""
        self.ticks += ticks
        self.arrivals += [now] * len(ticks)


@dataclass(frozen=True)
class Figures:
    """A run's figures; times in milliseconds.

    Latency is one token's way from the fake model server's write to the client's read, a gap the time between two
    tokens of one stream (0 where no stream has two), ``requests`` how many there were, failed ones included.
    """

    requests: int
    failures: dict[str, int]
    ttft_p50: float
    ttft_p99: float
    latency_p50: float
    latency_p99: float
    gap_p99: float


def figures(observations: Sequence[Observation], tokens: int) -> Figures:
    """Sum up a run whose requests were to bring ``tokens`` tokens each.

    Failed requests count as failures only; their tokens would flatter the others.

    Raises:
        NothingMeasuredError: no request succeeded.
    """
    good = [one for one in observations if _failure(one, tokens) is None]
    failures = Counter(failure for one in observations if (failure := _failure(one, tokens)))
    if not good:
        raise NothingMeasuredError(f"every request failed: {dict(failures)}")
    waits = [(one.arrivals[0] - one.started) * 1000 for one in good]
    gaps = [(later - earlier) * 1000 for one in good for earlier, later in itertools.pairwise(one.arrivals)]
    latencies = [
        (arrival - written) * 1000
        for one in good
        for arrival, written in zip(one.arrivals, written_at(one.ticks, one.started), strict=True)
    ]
    return Figures(
        requests=len(observations),
        failures=dict(failures),
        ttft_p50=quantile(waits, 0.5),
        ttft_p99=quantile(waits, 0.99),
        latency_p50=quantile(latencies, 0.5),
        latency_p99=quantile(latencies, 0.99),
        gap_p99=quantile(gaps, 0.99) if gaps else 0.0,
    )


def _failure(observation: Observation, tokens: int) -> str | None:
    if observation.failure is None and len(observation.ticks) != tokens:
        return f"{len(observation.ticks)} tokens of {tokens}"
    return observation.failure


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of the values do not exceed."""
    return sorted(values)[max(-int(-share * len(values) // 1), 1) - 1]
