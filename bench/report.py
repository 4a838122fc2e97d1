"""The figures of all rounds as one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from bench.figures import Figures
from bench.rig import Measurement


@dataclass(frozen=True)
class Row:
    """One load's figures: medians over the rounds, failures summed.

    ``added_*`` are differences to the direct call of the same round, in milliseconds, ``None`` where there was none;
    ``envoy_us`` and ``sidecar_us`` are µs of processor time per token.
    """

    load: str
    streams: int
    tokens_per_s: float
    events_per_s: float
    stretch: float | None
    added_ttft_ms: float | None
    added_p50_ms: float | None
    added_p99_ms: float | None
    envoy_us: float
    sidecar_us: float
    failures: int
    others: float

    def to_json(self) -> dict[str, object]:
        """The row as JSON members, numbers rounded to a thousandth."""
        return {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(self).items()}


def summarise(load: str, rounds: Sequence[tuple[Measurement, Figures | None]]) -> Row:
    """The row of one load from its measurements and the direct figures of the same rounds."""
    measured = [measurement for measurement, _ in rounds]
    stretches = [one.figures.stretch for one in measured if one.figures.stretch is not None]

    def added(value: Callable[[Figures], float]) -> float | None:
        differences = [value(one.figures) - value(direct) for one, direct in rounds if direct is not None]
        return median(differences) if differences else None

    return Row(
        load=load,
        streams=measured[0].figures.streams,
        tokens_per_s=median(one.figures.tokens_per_s for one in measured),
        events_per_s=median(one.figures.events_per_s for one in measured),
        stretch=median(stretches) if stretches else None,
        added_ttft_ms=added(lambda seen: seen.ttft_ms_p50),
        added_p50_ms=added(lambda seen: seen.latency_ms_p50),
        added_p99_ms=added(lambda seen: seen.latency_ms_p99),
        envoy_us=median(one.cpu_us["envoy"] for one in measured),
        sidecar_us=median(one.cpu_us["sidecar"] for one in measured),
        failures=sum(sum(one.figures.failures.values()) for one in measured),
        others=median(one.others for one in measured),
    )


_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("load", "load", "s"),
    ("streams", "streams", "d"),
    ("tokens/s", "tokens_per_s", ".0f"),
    ("events/s", "events_per_s", ".0f"),
    ("stretch", "stretch", ".3f"),
    ("added TTFT ms", "added_ttft_ms", ".2f"),
    ("added p50 ms", "added_p50_ms", ".2f"),
    ("added p99 ms", "added_p99_ms", ".2f"),
    ("Envoy µs/token", "envoy_us", ".0f"),
    ("sidecar µs/token", "sidecar_us", ".0f"),
    ("failed", "failures", "d"),
    ("others", "others", ".2f"),
)


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table; a dash where a load has no such figure."""
    lines = [[title for title, _, _ in _COLUMNS]]
    for row in rows:
        values = [(getattr(row, name), form) for _, name, form in _COLUMNS]
        lines.append(["-" if value is None else format(value, form) for value, form in values])
    return markdown(lines)


def markdown(lines: list[list[str]]) -> str:
    """A Markdown table whose first line is its head."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join(
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in ruled
    )
