"""``./dev bench --store``: what the ledger does on a real PostgreSQL and on SQLite, from one node to sixteen.

Each node is a process with a store and a ledger as a worker has them. Its callers reserve and settle one request after
another: what is measured is how much the store takes, and how long a reservation waits for it. With one organization
all nodes want the same rows in every transaction; with many, seldom.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import IO

from bench.cpu import cpu_seconds, family, machine_seconds
from bench.ledger_node import Node
from sidecar.store.migrate import migrate
from stack.paths import ROOT
from stack.postgres import Postgres, install

CALLERS = 64
"""Requests of a node that are under way at a time, in the runs that ask how much the store takes."""
MANY = 1000
SECONDS = 4.0


@dataclass(frozen=True)
class Case:
    """One run: an engine, the nodes, how many organizations they serve, the callers of each node, for how many
    seconds they lease (0: never), and what each statement takes longer than to the server on this machine."""

    engine: str
    nodes: int
    organizations: int
    callers: int
    lease_seconds: int = 0
    round_trip_ms: int = 0


CASES = [
    *(
        Case("PostgreSQL", nodes, organizations, callers)
        for callers in (1, CALLERS)
        for organizations in (MANY, 1)
        for nodes in (1, 4, 16)
    ),
    *(Case("PostgreSQL", 16, 1, callers, lease_seconds=5) for callers in (1, CALLERS)),
    # Where the wait for each other is not that for a processor.
    *(Case("PostgreSQL", 16, 1, 1, lease_seconds, round_trip_ms=10) for lease_seconds in (0, 5)),
    *(Case("SQLite", workers, MANY, callers) for callers in (1, CALLERS) for workers in (1, 4)),
]

"""For how long each case is measured."""

HEAD = (
    "| store | nodes | organizations | callers each | lease s | round trip ms "
    "| reservations/s | p50 ms | p99 ms | transactions/s each "
    "| pieces per transaction | statements per transaction | node µs | server µs | others | failed |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
)


def measure(directory: Path, progress: Callable[[str], None]) -> str:
    """Run all cases; a table in Markdown.

    Raises:
        StackError: PostgreSQL cannot be had.
    """
    install(progress)
    directory.mkdir(parents=True, exist_ok=True)
    postgres = Postgres(directory / "postgres.log", sync=True)
    try:
        rows = []
        for number, case in enumerate(CASES):
            progress(f"{case.engine}, {case.nodes} node(s), {case.organizations} organization(s), {case.callers} each")
            if case.engine == "SQLite":
                url = f"sqlite:///{directory}/{number}/ledger.db"
            else:
                url = postgres.url(postgres.create_database())
            migrate(url)
            asyncio.run(Node(url, case.organizations).fill())
            rows.append(run_case(case, url, postgres.process.pid))
        return HEAD + "".join(rows)
    finally:
        postgres.stop()


def run_case(case: Case, url: str, server: int) -> str:
    """The table's row of one case, on the store at ``url``; ``server`` is the process of PostgreSQL."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(_node(case, url)) for _ in range(case.nodes)]
        for node in nodes:
            _read(node)
        pids = {node.pid for node in nodes}
        servers = family([server])
        before = cpu_seconds(pids), cpu_seconds(servers), machine_seconds()
        began = time.monotonic()
        for node in nodes:
            _input(node).write("go\n")
            _input(node).flush()
        figures = [json.loads(_read(node)) for node in nodes]
        seconds = time.monotonic() - began
        used = [
            after - earlier
            for after, earlier in zip((cpu_seconds(pids), cpu_seconds(servers), machine_seconds()), before, strict=True)
        ]
    total = {name: sum(of[name] for of in figures) for name in figures[0] if name != "latencies"}
    percentiles = quantiles([one for of in figures for one in of["latencies"]], n=100)
    done, transactions = total["reservations"], total["transactions"]
    cells = [
        case.engine,
        case.nodes,
        case.organizations,
        case.callers,
        case.lease_seconds or "-",
        case.round_trip_ms or "-",
        f"{done / seconds:.0f}",
        f"{percentiles[49]:.1f}",
        f"{percentiles[98]:.1f}",
        f"{transactions / seconds / case.nodes:.0f}",
        f"{2 * done / transactions:.1f}",
        f"{total['statements'] / transactions:.1f}",
        f"{used[0] / done * 1e6:.0f}",
        f"{used[1] / done * 1e6:.0f}" if case.engine == "PostgreSQL" else "-",
        f"{(used[2] - used[0] - used[1]) / seconds:.2f}",
        total["failures"],
    ]
    return f"| {' | '.join(map(str, cells))} |\n"


@contextmanager
def _node(case: Case, url: str) -> Iterator[subprocess.Popen[str]]:
    options = {
        "url": url,
        "organizations": case.organizations,
        "lease-seconds": case.lease_seconds,
        "round-trip-ms": case.round_trip_ms,
        "callers": case.callers,
        "seconds": SECONDS,
    }
    node = subprocess.Popen(
        [sys.executable, "-m", "bench.ledger_node", *(f"--{name}={value}" for name, value in options.items())],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield node
    finally:
        _input(node).close()
        node.wait()


def _input(node: subprocess.Popen[str]) -> IO[str]:
    assert node.stdin is not None
    return node.stdin


def _read(node: subprocess.Popen[str]) -> str:
    assert node.stdout is not None
    line = node.stdout.readline()
    if not line:
        raise RuntimeError(f"a node of the bench has ended with status {node.wait()}")
    return line
