"""Who takes part in a run. A further wire or peer is one entry here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

from bench import nodes
from bench.measure import idle_load
from bench.nodes import Node, Progress
from bench.upstream import Upstream
from sidecar.envoy.settings import Wire
from sidecar.extproc.transport import TRANSPORTS

STRAIGHT = "nothing"
ENVOY = "Envoy alone"
ECHO = "Envoy + echo"
PEER = "Envoy + codex-relay"
PASSING = "passing on"
WIRES: tuple[Wire, ...] = get_args(Wire)
"""The wires; each is a candidate of this name."""
DEFAULT_TRANSPORT = "http2"

Start = Callable[[Path, Upstream, Progress], AbstractContextManager[Node]]


def candidates(*, full: bool) -> dict[str, Start]:
    """What starts each candidate, by name: base line and peers first, then the sidecar by wire and transport.

    Those of a ``full`` run are the echo and every transport besides.
    """
    found: dict[str, Start] = {
        STRAIGHT: nodes.straight,
        ENVOY: nodes.envoy_alone,
        **({ECHO: nodes.echo} if full else {}),
        PEER: nodes.codex_relay,
        "smg": nodes.smg,
        PASSING: nodes.passing,
    }
    for wire in WIRES:
        found[wire] = partial(_sidecar, wire, DEFAULT_TRANSPORT)
    others = sorted(TRANSPORTS.keys() - {DEFAULT_TRANSPORT}) if full else []
    for wire, transport in itertools.product(WIRES, others):
        found[f"{wire}, {transport}"] = partial(_sidecar, wire, transport)
    return found


def _sidecar(
    wire: Wire, transport: str, run_dir: Path, upstream: Upstream, progress: Progress
) -> AbstractContextManager[Node]:
    return nodes.sidecar(run_dir, upstream, wire, transport, progress)


@dataclass(frozen=True)
class Running:
    """A candidate that runs, and the processors' share of its parts when idle."""

    node: Node
    idle: Mapping[str, float]


@contextmanager
def running(
    starts: Mapping[str, Start], run_dir: Path, upstream: Upstream, progress: Progress
) -> Iterator[dict[str, Running]]:
    """All candidates side by side.

    Raises:
        StackError: one could not be had or started.
    """
    with ExitStack() as stack:
        found = {}
        for name, start in starts.items():
            progress(f"Starting {name}")
            directory = run_dir / name.replace(" ", "").replace(",", "-")
            found[name] = stack.enter_context(start(directory, upstream, lambda _step: None))
        progress("Waiting for them to settle")
        idle = idle_load(list(found.values()))
        yield {name: Running(node, share) for (name, node), share in zip(found.items(), idle, strict=True)}
