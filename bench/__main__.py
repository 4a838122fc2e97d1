"""``./dev bench``: what Envoy and the sidecar cost per token, beside others, and how much later a token comes."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from bench import accounts, page, profile
from bench.candidates import candidates, running
from bench.chain import chain_table, measure_chain
from bench.comparison import Results, disturbances, to_json
from bench.figures import NothingMeasuredError
from bench.growth import growth
from bench.hostile import hostile
from bench.ledger import measure as measure_ledger
from bench.loads import Load, main_loads, many_streams, one_token
from bench.machine import description
from bench.measure import Bench
from bench.report import tables
from bench.rounds import measure_all, warm_up
from bench.stored import measure_stored
from bench.tools import measure_tools
from bench.upstream import Upstream
from stack.paths import LOCAL, TOKENIZER
from stack.process import StackError
from stack.setup import install_tokenizer

ROUNDS = 3
QUICK_SECONDS = 200.0
FULL_SECONDS = 1200.0
"""Seconds after which no disturbed run is played again."""
_RUN_DIR = LOCAL / "bench"


def compare(options: argparse.Namespace) -> None:
    """Measure all candidates beside each other, print the tables, and write what was asked for.

    Raises:
        StackError: a candidate could not be had or started, or the run was disturbed.
        NothingMeasuredError: a candidate answered no request of a load.
    """
    deadline = time.monotonic() + (QUICK_SECONDS if options.quick else FULL_SECONDS)
    main, many = (main_loads(1.3), []) if options.quick else (main_loads(2.0), many_streams(2.0))
    with Upstream(_RUN_DIR, progress) as upstream:
        results = _measure(upstream, [*main, *many], not options.quick, deadline)
    text = f"{description()}\n\n{tables([*main, *many], results)}"
    print(text)
    if options.json:
        options.json.write_text(json.dumps(to_json(main, results), indent=2) + "\n")
    reasons = disturbances(results)
    if reasons:
        raise StackError("the run was disturbed, and is no result:\n  " + "\n  ".join(reasons))
    if options.write:
        page.write(page.PAGE, {"loads": text})


def _measure(upstream: Upstream, loads: list[Load], full: bool, deadline: float) -> Results:
    bench = Bench(upstream, progress)
    with running(candidates(full=full), _RUN_DIR, upstream, progress) as started:
        warm_up(bench, started, one_token(0.5))
        return measure_all(bench, started, loads, ROUNDS, deadline, progress)


def _chain(options: argparse.Namespace) -> None:
    table = chain_table(measure_chain(TOKENIZER))
    print(table)
    if options.write:
        page.write(page.PAGE, {"chain": table})


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./dev bench", description="Measure Envoy and the sidecar per token, beside other programs."
    )
    parser.add_argument("--quick", action="store_true", help="only the main loads, each shorter: four minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the main figures there as JSON")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/performance.md")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--profile", action="store_true", help="show where the time of a token goes instead")
    other.add_argument("--chain", action="store_true", help="measure the sidecar's own work without I/O instead")
    other.add_argument("--tools", action="store_true", help="measure what an agent's tools cost instead")
    other.add_argument("--growth", action="store_true", help="measure how costs grow, and what a stream holds, instead")
    other.add_argument("--hostile", action="store_true", help="measure honest clients beside attacks instead")
    other.add_argument("--accounts", action="store_true", help="measure what accounts add to a request instead")
    other.add_argument("--store", action="store_true", help="measure the ledger on PostgreSQL and SQLite instead")
    other.add_argument("--stored", action="store_true", help="measure turns of a long stored conversation instead")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the processes of the bench end too
    try:
        if options.store:
            print(measure_ledger(_RUN_DIR / "ledger", progress))
            return
        if options.stored:
            print(measure_stored(_RUN_DIR / "stored", progress))
            return
        install_tokenizer(progress)
        if options.chain:
            _chain(options)
        elif options.tools:
            print(measure_tools(TOKENIZER))
        elif options.hostile:
            print(hostile(_RUN_DIR, progress))
        elif options.profile or options.accounts or options.growth:
            measure = profile.measure if options.profile else accounts.measure if options.accounts else growth
            with Upstream(_RUN_DIR, progress) as upstream:
                print(measure(_RUN_DIR, upstream, progress))
        else:
            compare(options)
    except (StackError, NothingMeasuredError) as error:
        sys.exit(f"error: {error}")


def progress(step: str) -> None:
    """Say what comes next, apart from the figures."""
    print(step, file=sys.stderr)


if __name__ == "__main__":
    main()
