"""``./dev bench --accounts``: what identity, admission and the ledger add to a request, and to each of its tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from bench.fake_triton import PACED, UNPACED
from bench.loads import TTFT, one_token, paced
from bench.report import markdown
from bench.rig import Measurement, Rig
from stack.envoy import Wire
from stack.postgres import Postgres, install

ROUNDS = 5
STREAMS = 64
_SECONDS = 3.0
# All that can be limited or paid for, and so much of it that nobody is refused.
_PLENTY = 10**12
_LIMITS = {
    "requests_per_minute": _PLENTY,
    "tokens_per_minute": _PLENTY,
    "concurrent_requests": _PLENTY,
    "period": "month",
    "period_tokens": _PLENTY,
}
_PARTS = ("envoy", "sidecar", "database")


def measure(run_dir: Path, wire: Wire, rate: float, progress: Callable[[str], None]) -> str:
    """Measure without accounts, and with them on both engines, round by round; the table.

    Raises:
        StackError: a part could not start, or ended.
        NothingMeasuredError: no request succeeded.
    """
    install(progress)
    requests: dict[str, list[Measurement]] = defaultdict(list)
    streams: dict[str, list[Measurement]] = defaultdict(list)
    run_dir.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        postgres = Postgres(run_dir / "postgres.log", sync=True)
        stack.callback(postgres.stop)
        url = postgres.url(postgres.create_database())
        engines: dict[str, tuple[Mapping[str, Any] | None, Postgres | None]] = {
            "none": (None, None),
            "SQLite": (_accounts(run_dir / "sqlite", {}), None),
            "PostgreSQL": (
                _accounts(run_dir / "postgres", {"url": url}),
                postgres,
            ),
        }
        rigs = {
            name: stack.enter_context(
                Rig(run_dir / name, wire, rate, TTFT, progress, accounts=accounts, database=database)
            )
            for name, (accounts, database) in engines.items()
        }
        for rig in rigs.values():
            rig.through(one_token(), UNPACED)  # opens connections and fills caches
        for number in range(ROUNDS):
            progress(f"Round {number + 1} of {ROUNDS}")
            for name, rig in rigs.items():
                requests[name].append(rig.through(one_token(), UNPACED))
                streams[name].append(rig.through(paced(STREAMS, rate, _SECONDS), PACED))
    return _table(requests, streams)


def _accounts(directory: Path, store: Mapping[str, str]) -> Mapping[str, Any]:
    return {"store": {"state": str(directory / "state"), **store}, "admission": {"defaults": _LIMITS}}


def _table(requests: Mapping[str, list[Measurement]], streams: Mapping[str, list[Measurement]]) -> str:
    titles = ["accounts", *(f"{part} µs/request" for part in _PARTS), "p50 ms", "p99 ms"]
    lines = [[*titles, *(f"{part} µs/token" for part in _PARTS), "failed", "others"]]
    for name, measured in requests.items():
        lines.append(
            [
                name,
                *(f"{median(one.cpu_us[part] for one in measured):.0f}" for part in _PARTS),
                *(f"{median(of(one) for one in measured):.1f}" for of in (_p50, _p99)),
                *(f"{median(one.cpu_us[part] for one in streams[name]):.0f}" for part in _PARTS),
                str(sum(sum(one.figures.failures.values()) for one in (*measured, *streams[name]))),
                f"{median(one.others for one in measured):.2f}",
            ]
        )
    return markdown(lines)


def _p50(measured: Measurement) -> float:
    return measured.figures.ttft_ms_p50


def _p99(measured: Measurement) -> float:
    return measured.figures.ttft_ms_p99
