"""What the rounds of a run come to: ratios to the peer, what is added, who keeps up, and whether it is a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.candidates import ENVOY, PEER, STRAIGHT, WIRES
from bench.figures import Figures
from bench.loads import Load
from bench.measure import Measurement

OTHERS = 0.3
"""So many processors may be busy with something else before a run counts as disturbed."""
SPREAD = 1.5
"""The largest ratio of a wire to the peer over the smallest, of all rounds, that a result may have."""
GAP = 1.5
"""A candidate keeps up whose 99th percentile of the gaps between tokens is below so many of their intervals."""

Results = dict[str, dict[str, list[Measurement]]]
"""The measurements of all rounds, by load and candidate."""


@dataclass(frozen=True)
class Spread:
    """A figure over all rounds."""

    median: float
    low: float
    high: float


def ratio(ours: Sequence[Measurement], peers: Sequence[Measurement]) -> Spread:
    """Processor time per token over the peer's of the same round."""
    ratios = [one.us / peer.us for one, peer in zip(ours, peers, strict=True)]
    return Spread(median(ratios), min(ratios), max(ratios))


def added(of: Callable[[Figures], float], ours: Sequence[Measurement], straight: Sequence[Measurement]) -> float:
    """How much more a figure is than without anything on the way, median of the rounds' differences."""
    return median(of(one.figures) - of(base.figures) for one, base in zip(ours, straight, strict=True))


def keeps_up(load: Load, rounds: Sequence[Measurement]) -> bool:
    """Whether no request failed and gaps are below :data:`GAP` intervals, median of the rounds."""
    failed = any(one.figures.failures for one in rounds)
    return not failed and median(one.figures.gap_p99 for one in rounds) < GAP * load.interval * 1000


def part_us(part: str, rounds: Sequence[Measurement]) -> float:
    """µs of processor time per token in one part, 0 where a candidate has none such."""
    return median(one.cpu_us.get(part, 0.0) for one in rounds)


def disturbances(results: Results) -> list[str]:
    """Why this run is no result, a sentence each; none where it is one."""
    found = []
    for load, by_name in results.items():
        others = max(median(one.others for one in rounds) for rounds in by_name.values())
        if others > OTHERS:
            found.append(f"{load}: others kept {others:.1f} processors busy.")
        for name in _wires(by_name):
            spread = ratio(by_name[name], by_name[PEER])
            if spread.high > SPREAD * spread.low:
                found.append(
                    f"{load}, {name}: the ratio was {spread.low:.2f} in one round and {spread.high:.2f} in another."
                )
    return found


def to_json(loads: Sequence[Load], results: Results) -> dict[str, Any]:
    """The main figures of a run as JSON: µs of processor time per token, ratios to the peer, milliseconds."""
    return {
        "disturbed": bool(disturbances(results)),
        "loads": {load.name: _load_to_json(load, results[load.name]) for load in loads},
    }


def _load_to_json(load: Load, by_name: Mapping[str, Sequence[Measurement]]) -> dict[str, Any]:
    return {
        "peer_us": _us(by_name[PEER]),
        "envoy_us": _us(by_name[ENVOY]),
        **{
            name: {
                "ratio": round(ratio(by_name[name], by_name[PEER]).median, 3),
                "us": _us(by_name[name]),
                "sidecar_us": round(part_us("sidecar", by_name[name]), 1),
                "added_p50_ms": round(added(_latency_p50, by_name[name], by_name[STRAIGHT]), 3),
                "keeps_up": keeps_up(load, by_name[name]),
            }
            for name in _wires(by_name)
        },
    }


def _wires(by_name: Mapping[str, Sequence[Measurement]]) -> list[str]:
    return [wire for wire in WIRES if wire in by_name]


def _us(rounds: Sequence[Measurement]) -> float:
    return round(median(one.us for one in rounds), 1)


def _latency_p50(figures: Figures) -> float:
    return figures.latency_p50
