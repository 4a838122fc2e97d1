"""``./dev bench --accounts``: what identity, admission and the ledger add to a request, and to each of its tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from bench import nodes
from bench.candidates import DEFAULT_TRANSPORT
from bench.comparison import part_us
from bench.loads import one_token, paced
from bench.measure import Bench, Measurement, idle_load
from bench.report import markdown
from bench.upstream import Upstream
from stack.postgres import Postgres, install

ROUNDS = 5
STREAMS = 64
RATE = 20.0
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


def measure(run_dir: Path, upstream: Upstream, progress: Callable[[str], None]) -> str:
    """Measure the tunnel without accounts, and with them on both engines, round by round; the table.

    Raises:
        StackError: a part could not start, or ended.
        NothingMeasuredError: no request succeeded.
    """
    install(progress)
    requests: dict[str, list[Measurement]] = defaultdict(list)
    streams: dict[str, list[Measurement]] = defaultdict(list)
    run_dir /= "accounts"
    run_dir.mkdir(parents=True, exist_ok=True)
    bench = Bench(upstream, progress)
    with ExitStack() as stack:
        postgres = Postgres(run_dir / "postgres.log", sync=True)
        stack.callback(postgres.stop)
        url = postgres.url(postgres.create_database())
        engines: dict[str, tuple[Mapping[str, Any] | None, Postgres | None]] = {
            "none": (None, None),
            "SQLite": (_accounts(run_dir / "sqlite", {}), None),
            "PostgreSQL": (_accounts(run_dir / "postgres", {"url": url}), postgres),
        }
        started = {
            name: stack.enter_context(
                nodes.sidecar(
                    *(run_dir / name, upstream, "tunnel", DEFAULT_TRANSPORT, progress),
                    accounts=accounts,
                    database=database,
                )
            )
            for name, (accounts, database) in engines.items()
        }
        idle = dict(zip(started, idle_load(list(started.values())), strict=True))
        for name, node in started.items():
            bench.measure(node, one_token(1), idle[name])  # opens connections and fills caches
        for number in range(ROUNDS):
            progress(f"Round {number + 1} of {ROUNDS}")
            for name, node in started.items():
                requests[name].append(bench.measure(node, one_token(_SECONDS), idle[name]))
                streams[name].append(bench.measure(node, paced(STREAMS, RATE, _SECONDS), idle[name]))
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
                *(f"{part_us(part, measured):.0f}" for part in _PARTS),
                f"{median(one.figures.ttft_p50 for one in measured):.1f}",
                f"{median(one.figures.ttft_p99 for one in measured):.1f}",
                *(f"{part_us(part, streams[name]):.0f}" for part in _PARTS),
                str(sum(sum(one.figures.failures.values()) for one in (*measured, *streams[name]))),
                f"{median(one.others for one in measured):.2f}",
            ]
        )
    return markdown(lines)
