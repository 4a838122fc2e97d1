"""``./dev bench``: what Envoy and the sidecar cost per token, and how much later a token comes because of them."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from bench.chain import chain_table, measure_chain
from bench.fake_triton import PACED, UNPACED
from bench.figures import Figures, NothingMeasuredError
from bench.load import Load
from bench.machine import PAUSE, wake_up_cost
from bench.report import Row, summarise, table
from bench.rig import Measurement, Rig
from stack.paths import LOCAL, TOKENIZER
from stack.process import StackError
from stack.setup import install_tokenizer

RATE = 10.0
"""Tokens per second and stream of the paced loads: a fast reader's pace."""
TTFT = 0.05
"""The fake Triton's time to the first token, in seconds."""
RAMP = 1.0
"""Seconds over which paced streams start."""
ROUNDS = 3
LIMIT = 8.0
"""Seconds after which a run is cut off."""


def paced(streams: int, seconds: float = 4.0) -> Load:
    """Every stream one request whose tokens come in cadence for ``seconds``."""
    steady = (RAMP + TTFT + 0.5, TTFT + seconds - 1 / RATE)
    return Load(streams, requests=streams, tokens=int(seconds * RATE), ramp=RAMP, limit=LIMIT, steady=steady)


def unpaced(streams: int) -> Load:
    """Every stream one request whose tokens come at once: how fast a backlog is worked off."""
    return Load(streams, requests=streams, tokens=min(8_000, 32_000 // streams), ramp=0, limit=LIMIT)


def one_token() -> Load:
    """Short requests: what a request costs besides its tokens."""
    return Load(streams=16, requests=320, tokens=1, ramp=0, limit=LIMIT)


LOADS: list[tuple[str, Load, str]] = [
    *(("paced", paced(streams), PACED) for streams in (1, 64, 256, 512)),
    *(("unpaced", unpaced(streams), UNPACED) for streams in (1, 64, 256)),
    ("one token", one_token(), UNPACED),
]
"""Title, load and model of the table's rows."""


def measure(rig: Rig) -> list[Row]:
    """All loads, round by round, so that a change of the machine's mood meets them all."""
    rig.through(one_token(), UNPACED)  # opens connections and fills caches
    rounds: list[list[tuple[Measurement, Figures | None]]] = [[] for _ in LOADS]
    for number in range(ROUNDS):
        progress(f"Round {number + 1} of {ROUNDS}")
        for (_, load, model), results in zip(LOADS, rounds, strict=True):
            direct = rig.direct(paced(load.streams, seconds=2)) if model == PACED else None
            results.append((rig.through(load, model), direct))
    return [summarise(title, results) for (title, _, _), results in zip(LOADS, rounds, strict=True)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure Envoy and the sidecar per token.")
    parser.add_argument("--wire", choices=["tunnel", "direct"], default="tunnel", help="how Envoy reaches Triton")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    try:
        install_tokenizer(progress)
        with Rig(LOCAL / "bench", options.wire, RATE, TTFT, progress) as rig:
            rows, idle = measure(rig), rig.idle
    except (StackError, NothingMeasuredError) as error:
        sys.exit(f"error: {error}")
    progress("The chain without I/O")
    chain = measure_chain(TOKENIZER)
    hot, cold = wake_up_cost()
    if options.json:
        report = {
            "wire": options.wire,
            "rate": RATE,
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
