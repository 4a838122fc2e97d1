"""What a run showed, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.stamps import written_at


class NothingMeasuredError(Exception):
    """Every request of a run failed; the message counts the failures."""


@dataclass
class Observation:
    """One stream as its client saw it; times are seconds of CLOCK_MONOTONIC."""

    started: float
    ticks: list[int] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    events: int = 0
    failure: str | None = "unfinished"

    def tokens_arrived(self, ticks: Sequence[int], now: float) -> None:
        """Note one event's tokens."""
        self.events += 1
        self.ticks += ticks
        self.arrivals += [now] * len(ticks)


@dataclass(frozen=True)
class Figures:
    """A run's figures. Latency is one token's way from the fake Triton's write to the client's read.

    ``stretch`` is the median of the streams' durations over the cadence's own (1 means that it keeps up), ``None``
    where the cadence has no duration. ``tokens_per_s`` and ``events_per_s`` are those of the steady middle of the run.
    """

    streams: int
    requests: int
    failures: dict[str, int]
    tokens: int
    tokens_per_s: float
    events_per_s: float
    ttft_ms_p50: float
    ttft_ms_p99: float
    latency_ms_p50: float
    latency_ms_p99: float
    stretch: float | None


def figures(observations: Sequence[Observation], streams: int, rate: float) -> Figures:
    """Sum up a run of ``streams`` concurrent streams with ``rate`` tokens per second each (0: no cadence).

    Failed streams count as failures only; their tokens would flatter the others.

    Raises:
        NothingMeasuredError: no stream succeeded.
    """
    failures: dict[str, int] = {}
    for observation in observations:
        if observation.failure:
            failures[observation.failure] = failures.get(observation.failure, 0) + 1
    good = [observation for observation in observations if observation.failure is None]
    if not good:
        raise NothingMeasuredError(f"every request failed: {failures}")
    latencies = [
        (arrival - written) * 1000
        for observation in good
        for arrival, written in zip(
            observation.arrivals, written_at(observation.ticks, observation.started), strict=True
        )
    ]
    waits = [(observation.arrivals[0] - observation.started) * 1000 for observation in good]
    arrivals = [arrival for observation in good for arrival in observation.arrivals]
    tokens_per_s = steady_rate(arrivals)
    return Figures(
        streams=streams,
        requests=len(observations),
        failures=failures,
        tokens=len(arrivals),
        tokens_per_s=tokens_per_s,
        events_per_s=tokens_per_s * sum(observation.events for observation in good) / len(arrivals),
        ttft_ms_p50=quantile(waits, 0.5),
        ttft_ms_p99=quantile(waits, 0.99),
        latency_ms_p50=quantile(latencies, 0.5),
        latency_ms_p99=quantile(latencies, 0.99),
        stretch=stretch(good, rate),
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of the values do not exceed."""
    return sorted(values)[max(-int(-share * len(values) // 1), 1) - 1]


def steady_rate(arrivals: Sequence[float]) -> float:
    """Arrivals per second without the first and the last tenth, in which streams come and go; 0 if all are at once."""
    ordered = sorted(arrivals)
    first, last = len(ordered) // 10, len(ordered) - 1 - len(ordered) // 10
    seconds = ordered[last] - ordered[first]
    return (last - first) / seconds if seconds else 0.0


def stretch(observations: Sequence[Observation], rate: float) -> float | None:
    """The median of the streams' durations over the cadence's; ``None`` without cadence or with one token each."""
    durations = [
        (seen.arrivals[-1] - seen.arrivals[0]) * rate / (len(seen.arrivals) - 1)
        for seen in observations
        if len(seen.arrivals) > 1
    ]
    return median(durations) if rate and durations else None
