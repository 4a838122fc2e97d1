"""The figures of a run as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from bench.candidates import PEER, STRAIGHT
from bench.comparison import Results, added, keeps_up, part_us, ratio
from bench.loads import Load
from bench.measure import Measurement

_TITLES = [
    "",
    "µs",
    "ratio to the peer",
    "Envoy µs",
    "the other µs",
    "added p50 ms",
    "added p99 ms",
    "added TTFT ms",
    "p99 gap ms",
    "keeps up",
    "failed",
]


def tables(loads: Sequence[Load], results: Results) -> str:
    """A titled table for each load, with a line for each candidate: medians of the rounds."""
    return "\n\n".join(f"{_title(load)}\n\n{_table(load, results[load.name])}" for load in loads)


def _title(load: Load) -> str:
    if load.repeat:
        return f"**`{load.name}`**: requests for one token, {load.streams} at a time; µs per request"
    step = ", all in step" if load.in_step else ""
    return (
        f"**`{load.name}`**: {load.streams} streams of {load.rate:.0f} tokens per second{step}; µs per token, "
        f"a token every {load.interval * 1000:.0f} ms"
    )


def _table(load: Load, by_name: Mapping[str, Sequence[Measurement]]) -> str:
    return markdown([_TITLES, *(_line(load, name, by_name) for name in by_name)])


def _line(load: Load, name: str, by_name: Mapping[str, Sequence[Measurement]]) -> list[str]:
    rounds, straight = by_name[name], by_name[STRAIGHT]
    cost = ["-"] * 4
    differences = ["-"] * 3
    if name != STRAIGHT:
        spread = ratio(rounds, by_name[PEER])
        other = part_us("sidecar", rounds) + part_us("bridge", rounds)
        cost = [
            f"{median(one.us for one in rounds):.0f}",
            f"{spread.median:.2f} ({spread.low:.2f}–{spread.high:.2f})",
            f"{part_us('envoy', rounds):.0f}",
            f"{other:.0f}",
        ]
        differences = [
            f"{added(lambda seen: seen.latency_p50, rounds, straight):.2f}",
            f"{added(lambda seen: seen.latency_p99, rounds, straight):.1f}",
            f"{added(lambda seen: seen.ttft_p50, rounds, straight):.1f}",
        ]
    gap = "-" if load.repeat else f"{median(one.figures.gap_p99 for one in rounds):.1f}"
    failed = sum(sum(one.figures.failures.values()) for one in rounds)
    return [name, *cost, *differences, gap, "yes" if keeps_up(load, rounds) else "no", str(failed)]


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose first line is its head."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join(
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in ruled
    )
