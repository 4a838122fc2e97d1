"""One run of a load through a node: what the client saw, and what it cost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench import driver, native
from bench.cpu import cpu_seconds, family, machine_seconds
from bench.figures import Figures, figures
from bench.loads import Load
from bench.nodes import Node
from bench.script import MODEL
from bench.upstream import Upstream

_IDLE_SECONDS = 2.0


@dataclass(frozen=True)
class Snapshot:
    """Processor time used so far, in seconds: by each part, by all of the bench, and by everything on the machine."""

    at: float
    parts: Mapping[str, float]
    bench: float
    machine: float


@dataclass(frozen=True)
class Measurement:
    """One run.

    ``cpu_us`` is the processor time per token by part, in µs, above what the part takes when idle. ``others`` is how
    many processors were busy with anything that is no part of the bench: a large number marks a disturbed run.
    """

    figures: Figures
    cpu_us: Mapping[str, float]
    others: float

    @property
    def us(self) -> float:
        """µs per token of everything on the way."""
        return sum(self.cpu_us.values())


class Bench:
    """Plays loads through nodes."""

    def __init__(self, upstream: Upstream, progress: Callable[[str], None]) -> None:
        """``upstream`` is the model server behind the nodes."""
        self._upstream = upstream
        self._driver = native.command("load", progress)

    def play(self, node: Node, load: Load, request: bytes = b"") -> driver.Run:
        """Begin a load, of a short request unless there is another one."""
        self._upstream.answer_by(load)
        request = request or driver.request(node.port, node.path, node.key, MODEL)
        return driver.Run(self._driver, self._upstream.script, node.port, load, request)

    def measure(self, node: Node, load: Load, idle: Mapping[str, float], request: bytes = b"") -> Measurement:
        """Play a load and measure it while all its streams run; ``idle`` is :func:`idle_load` of the node.

        Raises:
            NothingMeasuredError: no request succeeded.
        """
        run = self.play(node, load, request)
        begin, end = (run.start + moment for moment in load.steady)
        sleep_until(begin)
        before = _snapshot(node)
        sleep_until(end)
        after = _snapshot(node)
        observations = run.observations()
        tokens = sum(before.at <= arrival <= after.at for one in observations for arrival in one.arrivals)
        seen = figures(observations, load.tokens)
        seconds = after.at - before.at
        spent = {part: after.parts[part] - before.parts[part] - idle[part] * seconds for part in node.parts}
        others = (after.machine - before.machine - (after.bench - before.bench)) / seconds
        # None at all arrive where a node hangs: what it cost is then all of it.
        return Measurement(seen, {part: cost / max(tokens, 1) * 1e6 for part, cost in spent.items()}, others)


def idle_load(nodes: Sequence[Node]) -> list[dict[str, float]]:
    """Processors' share that each node's parts take with nothing to do, such as for health checks."""
    before = [_snapshot(node) for node in nodes]
    time.sleep(_IDLE_SECONDS)
    after = [_snapshot(node) for node in nodes]
    return [
        {part: (later.parts[part] - earlier.parts[part]) / (later.at - earlier.at) for part in earlier.parts}
        for earlier, later in zip(before, after, strict=True)
    ]


def sleep_until(moment: float) -> None:
    """Sleep until a moment of CLOCK_MONOTONIC."""
    time.sleep(max(moment - time.monotonic(), 0))


def _snapshot(node: Node) -> Snapshot:
    return Snapshot(
        at=time.monotonic(),
        parts={part: cpu_seconds(family([pid])) for part, pid in node.parts.items()},
        bench=cpu_seconds(family([os.getpid()])),
        machine=machine_seconds(),
    )
