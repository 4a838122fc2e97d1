"""``./dev bench --hostile``: what honest clients notice of each attack, and what it is answered."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.report import markdown
from stack.local import LocalStack
from tests.hostile.attacks import ATTACKS
from tests.hostile.honest import Waits, answers, forget_peaks, honest_clients, p99, peak, under_attack
from tests.hostile.stacks import besieged

SECONDS = 5.0
_QUIET_SECONDS = 3.0


@dataclass(frozen=True)
class Row:
    """One attack: what honest clients met just before it and during it, the workers' largest memory, the answers."""

    attack: str
    quiet: Waits
    waits: Waits
    peak: int
    answers: Counter[str]


async def measure(stack: LocalStack, title: str, names: list[str]) -> Row:
    """Let honest clients work alone, and then beside the attacks of these names."""
    async with honest_clients(stack) as quiet:
        await asyncio.sleep(_QUIET_SECONDS)
    workers = stack.sidecar.worker_pids()
    async with under_attack(stack, names, SECONDS) as attackers:
        forget_peaks(workers)
        async with honest_clients(stack) as waits:
            answered = await answers(attackers)
    return Row(title, quiet, waits, peak(workers), sum(answered.values(), Counter()))


def hostile(run_dir: Path, progress: Callable[[str], None]) -> str:
    """Measure every attack, then all at once, on the real Envoy, sidecar and Triton; the table.

    Raises:
        StackError: a part of the stack could not start, or ended.
    """
    loads = [*((name, [name]) for name in ATTACKS), ("all at once", list(ATTACKS))]
    rows = []
    with besieged(run_dir) as stack:
        for title, names in loads:
            progress(title)
            rows.append(asyncio.run(measure(stack, title, names)))
    return table(rows)


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    titles = [
        "attack",
        "p99 gap ms, quiet",
        "p99 gap ms",
        "p99 short request ms, quiet",
        "p99 short request ms",
        "honest requests failed",
        "worker's peak MB",
        "answers",
    ]
    lines = [
        [
            row.attack,
            *(f"{p99(values) * 1000:.0f}" for values in (row.quiet.gaps, row.waits.gaps)),
            *(f"{p99(values) * 1000:.0f}" for values in (row.quiet.short, row.waits.short)),
            str(len(row.quiet.failures) + len(row.waits.failures)),
            f"{row.peak / 1e6:.0f}",
            ", ".join(f"{count} × {answer}" for answer, count in row.answers.most_common()),
        ]
        for row in rows
    ]
    return markdown([titles, *lines])
