"""``./dev bench``: what Envoy and the sidecar cost per token, and how much later a token comes because of them."""

from __future__ import annotations

import argparse
import json
import sys

from bench.fake_triton import PACED, UNPACED
from bench.figures import Figures
from bench.load import Load
from bench.report import Row, summarise, table
from bench.rig import Measurement, Rig
from stack.paths import LOCAL
from stack.process import StackError
from stack.setup import install_tokenizer

RATE = 20.0
"""Tokens per second and stream of the paced loads."""
TTFT = 0.05
"""The fake Triton's time to the first token, in seconds."""
ROUNDS = 3
LEVELS = (1, 64, 256)
SECONDS = 4.0
"""How long a paced stream lasts."""
UNPACED_TOKENS = {1: 8000, 64: 500, 256: 125}
"""Tokens per stream of the unpaced loads, by streams."""


def paced(streams: int) -> Load:
    """Every stream one request; they start one after the other within a second."""
    ramp = 1.0 if streams > 1 else 0.0
    return Load(streams, requests=streams, tokens=int(SECONDS * RATE), ramp=ramp, limit=3 * SECONDS)


def unpaced(streams: int) -> Load:
    """Every stream one request whose tokens come at once: how fast a backlog is worked off."""
    return Load(streams, requests=streams, tokens=UNPACED_TOKENS[streams], ramp=0, limit=3 * SECONDS)


ONE_TOKEN = Load(streams=16, requests=320, tokens=1, ramp=0, limit=3 * SECONDS)
"""Short requests: what a request costs besides its tokens."""


def measure(rig: Rig) -> list[Row]:
    """All loads, round by round, so that a change of the machine's mood meets them all."""
    rounds: dict[tuple[str, int], list[tuple[Measurement, Figures | None]]] = {}
    rig.through(ONE_TOKEN, UNPACED)  # warms connections and lazily built tables
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
        for streams in LEVELS:
            direct = rig.direct(paced(streams))
            rounds.setdefault(("paced", streams), []).append((rig.through(paced(streams), PACED), direct))
            rounds.setdefault(("unpaced", streams), []).append((rig.through(unpaced(streams), UNPACED), None))
        rounds.setdefault(("one token", 16), []).append((rig.through(ONE_TOKEN, UNPACED), None))
    return [
        summarise(load, rounds[load, streams]) for load, streams in sorted(rounds, key=lambda key: key[0] != "paced")
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure Envoy and the sidecar per token.")
    parser.add_argument("--wire", choices=["tunnel", "direct"], default="tunnel", help="how Envoy reaches Triton")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()

    def progress(step: str) -> None:
        print(step, file=sys.stderr)

    try:
        install_tokenizer(progress)
        with Rig(LOCAL / "bench", options.wire, RATE, TTFT, progress) as rig:
            rows = measure(rig)
    except StackError as error:
        sys.exit(f"error: {error}")
    if options.json:
        idle = {part: round(share, 4) for part, share in rig.idle.items()}
        print(json.dumps({"wire": options.wire, "rate": RATE, "idle": idle, "rows": [row.to_json() for row in rows]}))
        return
    print(table(rows))
    print(
        f"Idle: Envoy {rig.idle['envoy']:.2%}, sidecar {rig.idle['sidecar']:.2%} of one processor (subtracted above)."
    )


if __name__ == "__main__":
    main()
