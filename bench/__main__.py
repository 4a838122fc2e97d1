"""``./dev bench``: what Envoy and the sidecar cost per token, and how much later a token comes because of them."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import defaultdict
from dataclasses import asdict
from typing import get_args

from bench.accounts import measure as measure_accounts
from bench.chain import chain_table, measure_chain
from bench.fake_triton import PACED, UNPACED
from bench.figures import Figures, NothingMeasuredError
from bench.hostile import hostile
from bench.ledger import measure as measure_ledger
from bench.loads import TTFT, loads, one_token, paced
from bench.machine import PAUSE, wake_up_cost
from bench.report import Row, summarise, table
from bench.rig import Measurement, Rig
from sidecar.extproc.transport import TRANSPORTS
from stack.envoy import Wire
from stack.paths import LOCAL, TOKENIZER
from stack.process import StackError
from stack.setup import install_tokenizer

ROUNDS = 3
BUDGET = 90.0
"""Seconds after which no further round begins, so that a bench on a busy machine ends too."""


def measure(rig: Rig) -> list[Row]:
    """All loads, round by round, so that a change of the machine's mood meets them all."""
    rig.through(one_token(), UNPACED)  # opens connections and fills caches
    results: dict[tuple[str, int], list[tuple[Measurement, Figures | None]]] = defaultdict(list)
    deadline = time.monotonic() + BUDGET
    for number in range(ROUNDS):
        if time.monotonic() > deadline:
            break
        progress(f"Round {number + 1} of {ROUNDS}")
        for title, load, model in loads(rig.rate):
            direct = rig.direct(paced(load.streams, rig.rate, seconds=2)) if model == PACED else None
            results[title, load.streams].append((rig.through(load, model), direct))
    return [summarise(title, rounds) for (title, _), rounds in results.items()]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure Envoy and the sidecar per token.")
    parser.add_argument("--wire", choices=get_args(Wire), default="tunnel", help="how Envoy reaches Triton")
    parser.add_argument(
        "--transport", choices=sorted(TRANSPORTS), default="http2", help="what the sidecar speaks to Envoy with"
    )
    parser.add_argument("--rate", type=float, default=10, help="tokens per second and stream of the paced loads")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--hostile", action="store_true", help="measure honest clients beside attacks instead")
    parser.add_argument("--accounts", action="store_true", help="measure what accounts add to a request instead")
    parser.add_argument("--store", action="store_true", help="measure the ledger on PostgreSQL and SQLite instead")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the processes of the rig end too
    try:
        if options.store:
            print(measure_ledger(LOCAL / "bench" / "ledger", progress))
            return
        install_tokenizer(progress)
        if options.accounts:
            print(measure_accounts(LOCAL / "bench" / "accounts", options.wire, options.rate, progress))
            return
        if options.hostile:
            print(hostile(LOCAL / "bench", progress))
            return
        with Rig(LOCAL / "bench", options.wire, options.rate, TTFT, progress, options.transport) as rig:
            rows, idle = measure(rig), rig.idle
    except (StackError, NothingMeasuredError) as error:
        sys.exit(f"error: {error}")
    progress("The chain without I/O")
    chain = measure_chain(TOKENIZER)
    hot, cold = wake_up_cost()
    if options.json:
        report = {
            "wire": options.wire,
            "transport": options.transport,
            "rate": options.rate,
            "rows": [row.to_json() for row in rows],
            "idle": idle,
            "chain": [asdict(row) for row in chain],
            "wake_up_us": {"hot": hot, "cold": cold},
        }
        print(json.dumps(report, indent=2))
        return
    print(f"{table(rows)}\n\n{chain_table(chain)}\n")
    print(f"Idle, subtracted above: Envoy {idle['envoy']:.2%}, sidecar {idle['sidecar']:.2%} of a processor.")
    print(
        f"This machine: work of {hot:.0f} µs in a tight loop takes {cold:.0f} µs after {PAUSE * 1000:.0f} ms of sleep."
    )


def progress(step: str) -> None:
    """Say what comes next, apart from the figures."""
    print(step, file=sys.stderr)


if __name__ == "__main__":
    main()
