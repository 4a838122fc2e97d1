"""How many nodes many streams need, by a simulation of what tokens wait for.

``python -m bench.simulation STREAMS RATE CORES NODES…`` prints a row for each number of nodes of so many cores.

A token is work of an Envoy thread, then of a worker, then of the same Envoy thread; by the tunnel another Envoy thread,
whose listener calls the model server, comes first. A thread that begins takes all that waits for it, and holds a core
for the cost of a wake-up and of each token: what is measured falls with the load in this way. Cores go to threads in
the order in which they were ready; nothing is taken away before it is done.

It leaves out requests (what they cost is in ``docs/performance.md``), the model server, the network and all else that a
machine does. Times are in seconds.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.report import markdown


@dataclass(frozen=True)
class Cost:
    """What a thread takes of a core when it begins, and for each token it then handles."""

    wake: float
    each: float


# Fitted to what ``./dev bench --growth`` measured on two cores with 64 streams of 20 tokens per second and with 512
# of 40; ``docs/scale.md`` tells what they say of a load between.
ENVOY, WORKER = Cost(50e-6, 12e-6), Cost(130e-6, 20e-6)


@dataclass(frozen=True)
class Machine:
    """A node: so many cores, Envoy threads and workers, with what a token costs in one pass of either."""

    cores: int
    envoys: int
    workers: int
    envoy: Cost
    worker: Cost
    tunnel: bool = False


@dataclass(frozen=True)
class Outcome:
    """``utilisation`` is a share of all cores, lags are of tokens, costs are of a token in all passes of a part."""

    utilisation: float
    lag_p50: float
    lag_p99: float
    envoy: float
    worker: float


@dataclass(eq=False)
class _Thread:
    cost: Cost
    waiting: list[_Token] = field(default_factory=list)
    ready: bool = False
    busy: float = 0.0


@dataclass(slots=True)
class _Token:
    at: float
    way: Iterator[_Thread]


def simulate(machine: Machine, streams: int, rate: float, seconds: float, seed: int = 0) -> Outcome:
    """``streams`` streams of ``rate`` tokens per second each, in no step with each other, for ``seconds``."""
    choose = random.Random(seed)
    envoys = [_Thread(machine.envoy) for _ in range(machine.envoys)]
    workers = [_Thread(machine.worker) for _ in range(machine.workers)]
    ways: list[list[_Thread]] = []
    for stream in range(streams):
        own, other = envoys[stream % len(envoys)], choose.choice(envoys)
        ways.append([*([other] if machine.tunnel else []), own, choose.choice(workers), own])
    lags = _run(machine.cores, ways, [choose.random() / rate for _ in ways], 1 / rate, seconds)
    tokens = len(lags)
    spent = [sum(thread.busy for thread in threads) for threads in (envoys, workers)]
    return Outcome(
        utilisation=sum(spent) / (seconds * machine.cores),
        lag_p50=sorted(lags)[tokens // 2],
        lag_p99=sorted(lags)[tokens * 99 // 100],
        envoy=spent[0] / tokens,
        worker=spent[1] / tokens,
    )


def _run(
    cores: int, ways: Sequence[Sequence[_Thread]], starts: Sequence[float], interval: float, seconds: float
) -> list[float]:
    """The lags of all tokens that are made within ``seconds``, of which each stream's first comes at its start."""
    lags: list[float] = []
    ready: deque[_Thread] = deque()
    # What happens next: a token is made (of a stream), or a thread is done with some.
    events: list[tuple[float, int, int, tuple[_Thread, list[_Token]] | None]] = []
    order = iter(range(2**62))
    for stream, start in enumerate(starts):
        heapq.heappush(events, (start, next(order), stream, None))

    def hand_on(token: _Token, now: float) -> None:
        thread = next(token.way, None)
        if thread is None:
            lags.append(now - token.at)
            return
        thread.waiting.append(token)
        if not thread.ready:
            thread.ready = True
            ready.append(thread)

    while events:
        now, _, stream, done = heapq.heappop(events)
        if done is None:
            hand_on(_Token(now, iter(ways[stream])), now)
            if now + interval < seconds:
                heapq.heappush(events, (now + interval, next(order), stream, None))
        else:
            cores += 1
            thread, tokens = done
            for token in tokens:
                hand_on(token, now)
            thread.ready = bool(thread.waiting)
            if thread.ready:
                ready.append(thread)
        while cores and ready:
            thread = ready.popleft()
            cores -= 1
            tokens, thread.waiting = thread.waiting, []
            took = thread.cost.wake + thread.cost.each * len(tokens)
            thread.busy += took
            heapq.heappush(events, (now + took, next(order), 0, (thread, tokens)))
    return lags


def table(streams: int, rate: float, cores: int, nodes: Sequence[int]) -> str:
    """What so many streams come to on different numbers of nodes, as a Markdown table."""
    machine = Machine(cores, cores // 2, cores // 2, ENVOY, WORKER, tunnel=True)
    rows = [["nodes", "cores", "streams per core", "utilisation", "lag p50 ms", "lag p99 ms"]]
    for count in nodes:
        seen = simulate(machine, streams // count, rate, seconds=1)
        lags = [f"{lag * 1000:.1f}" for lag in (seen.lag_p50, seen.lag_p99)]
        rows.append(
            [str(count), str(count * cores), f"{streams / count / cores:.0f}", f"{seen.utilisation:.0%}", *lags]
        )
    return markdown(rows)


if __name__ == "__main__":
    print(table(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), [int(count) for count in sys.argv[4:]]))
