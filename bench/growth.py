"""``./dev bench --growth``: how costs grow with answers, streams and tools, what a stream holds, heavy neighbours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import driver, heavy
from bench.loads import Load, one_token, paced
from bench.measure import Bench, Measurement, idle_load, sleep_until
from bench.nodes import Node
from bench.report import markdown
from bench.script import MODEL
from bench.upstream import Upstream
from sidecar.envoy.settings import Wire
from stack.local import LocalStack
from stack.paths import TOKENIZER
from stack.sidecar import Model

Progress = Callable[[str], None]

MARKED = "marked"
"""The model whose answers are looked through for calls and reasoning."""
CONTEXT_LENGTH = 250_000
LENGTHS = (100, 1_000, 10_000, 100_000)
"""Tokens of an answer."""
_AT_ONCE = 1e9
_SECONDS = 3.0
# Processors that an idle node may use.
_AT_REST = 0.1
HONEST = paced(64, 20, _SECONDS)
"""The streams beside which a heavy request is made."""
HELD = 500
"""Streams at a time whose memory is measured."""
UNREAD = 100
"""Streams that are never read from, at a time."""


@contextmanager
def node_of(run_dir: Path, upstream: Upstream, wire: Wire, progress: Progress) -> Iterator[Node]:
    """Envoy and the sidecar with two models: one that writes plain text, and one with calls and reasoning in it.

    Raises:
        StackError: a part could not start, or ended.
    """
    limits = {"limits": {"max_tools": 4096}}
    plain = Model(MODEL, MODEL, TOKENIZER, CONTEXT_LENGTH, limits)
    marked = replace(plain, name=MARKED, settings={**limits, "tool_format": "hermes", "reasoning_format": "think"})
    stack = LocalStack(
        run_dir,
        models=[plain, marked],
        wire=wire,
        triton_address=f"127.0.0.1:{upstream.grpc_port}",
        accounts=False,
        progress=progress,
    )
    with stack:
        parts = {"envoy": stack.envoy.process.pid, "sidecar": stack.sidecar.process.pid}
        yield Node(stack.port, "/v1/infer", parts, workers=stack.sidecar.worker_pids())


@dataclass(frozen=True)
class Growth:
    """What measures: the model server, the bench, a node of two models, and what its parts use when idle."""

    upstream: Upstream
    bench: Bench
    node: Node
    idle: Mapping[str, float]
    progress: Progress

    def play(self, load: Load, request: bytes) -> driver.Run:
        """Begin a load of one request."""
        return self.bench.play(self.node, load, request)

    def measure(self, load: Load, request: bytes) -> Measurement:
        """Play a load of one request, and measure it."""
        self.progress(f"{load.streams} × {load.rate:.0f}, {load.tokens} tokens")
        return self.bench.measure(self.node, load, self.idle, request)

    def request(self, model: str = MODEL, tools: int = 0, text: str = "Name the moments as they pass.") -> bytes:
        """A streamed request to the node."""
        return heavy.request(self.node, {"model": model, "input": text, "tools": heavy.tools(tools)})

    def by_length(self) -> str:
        """Processor time per token by the length of an answer, all tokens of which are there at once."""
        plain = self.request()
        per_request = self.measure(one_token(_SECONDS), plain)
        rows = [["tokens", "Envoy µs/token", "sidecar µs/token", "the same without the request"]]
        for tokens in LENGTHS:
            load = Load("unpaced", streams=4, rate=_AT_ONCE, tokens=tokens, repeat=_SECONDS)
            cost = self.measure(load, plain).cpu_us
            rest = cost["sidecar"] - per_request.cpu_us["sidecar"] / tokens
            rows.append([f"{tokens:,}", f"{cost['envoy']:.1f}", f"{cost['sidecar']:.1f}", f"{rest:.1f}"])
        return markdown(rows)

    def by_streams(self) -> str:
        """Processor time per token and lag by the number of streams, with and without calls and reasoning."""
        rows = [["streams", "answer", "Envoy µs/token", "sidecar µs/token", "p99 gap / interval", "failed"]]
        for load in (paced(streams, 20, _SECONDS) for streams in (1, 8, 64, 256)):
            rows.append(self._row(load, "text", self.request()))
        # So many that they are prepared before the run is over.
        rows.append(self._row(paced(8, 20, _SECONDS), "200 tools, reasoning", self.request(MARKED, tools=200)))
        for load in (paced(512, 40, _SECONDS), paced(1000, 20, _SECONDS)):
            rows.append(self._row(load, "text", self.request()))
            rows.append(self._row(load, "tools, reasoning", self.request(MARKED, tools=2)))
        return markdown(rows)

    def _row(self, load: Load, title: str, request: bytes) -> list[str]:
        seen = self.measure(load, request)
        cost, gap = seen.cpu_us, seen.figures.gap_p99 / 1000 / load.interval
        return [
            load.name,
            title,
            f"{cost['envoy']:.0f}",
            f"{cost['sidecar']:.0f}",
            f"{gap:.2f}",
            str(sum(seen.figures.failures.values())),
        ]

    def memory(self) -> str:
        """Bytes of a stream, by resident memory with streams less that without."""
        rows = [["streams", "", "Envoy KB/stream", "workers KB/stream"]]
        slow = Load("held", streams=HELD, rate=1, tokens=6)
        self.play(
            one_token(_SECONDS), self.request()
        ).observations()  # fills caches, and has what loading left collected
        before = self._resident()
        run = self.play(slow, self.request())
        sleep_until(run.start + 4)
        rows.append(self._memory_row(HELD, "read as they come", before))
        run.observations()
        self.upstream.answer_by(Load("unpaced", streams=UNREAD, rate=_AT_ONCE, tokens=LENGTHS[-1]))
        before = self._resident()
        with heavy.deaf_clients(self.node.port, self.request(), UNREAD):
            self._wait_for_rest()
            rows.append(self._memory_row(UNREAD, "never read", before))
        return markdown(rows)

    def _wait_for_rest(self) -> None:
        """Until the parts use little of the processors."""
        used = heavy.processor_seconds(self.node)
        while True:
            time.sleep(0.5)
            now = heavy.processor_seconds(self.node)
            if now - used < _AT_REST * 0.5:
                return
            used = now

    def _resident(self) -> tuple[int, int]:
        return heavy.resident([self.node.parts["envoy"]]), heavy.resident(self.node.workers)

    def _memory_row(self, streams: int, title: str, before: tuple[int, int]) -> list[str]:
        grown = [(now - then) / streams / 1000 for now, then in zip(self._resident(), before, strict=True)]
        return [str(streams), title, *(f"{size:.0f}" for size in grown)]

    def neighbours(self) -> str:
        """The gaps of 64 streams beside each heavy request, which is made again and again."""
        rows = [["beside 64 × 20", "p99 gap ms", "p99 latency ms", "heavy requests", "answers"]]
        for title, body in heavy.bodies(MODEL).items():
            with heavy.again_and_again(self.node, body) as answers:
                figures = self.measure(HONEST, self.request()).figures
            statuses = ", ".join(f"{count} × {status}" for status, count in sorted(answers.items()))
            numbers = [f"{figures.gap_p99:.1f}", f"{figures.latency_p99:.1f}", str(sum(answers.values()))]
            rows.append([title, *numbers, statuses])
        return markdown(rows)

    def arrivals(self) -> str:
        """300 clients at once beside the streams: when their first tokens come, and what the others notice."""
        run = self.play(HONEST, self.request())
        crowd = Load("crowd", streams=300, rate=HONEST.rate, tokens=HONEST.tokens, repeat=0.001)
        sleep_until(run.start + 1.0)
        burst = self.play(crowd, self.request())
        waits = sorted((one.arrivals[0] - one.started) * 1000 for one in burst.observations() if one.arrivals)
        gaps = sorted(gap for one in run.observations() for gap in heavy.gaps_of(one))
        rows = [["300 at once", "of 300 answered", "TTFT p50 ms", "TTFT p99 ms", "p99 gap ms of 64 others"]]
        numbers = [waits[len(waits) // 2], waits[len(waits) * 99 // 100], gaps[len(gaps) * 99 // 100] * 1000]
        rows.append(["", str(len(waits)), *(f"{number:.0f}" for number in numbers)])
        return markdown(rows)


def growth(run_dir: Path, upstream: Upstream, progress: Progress) -> str:
    """All tables, of the tunnel.

    Raises:
        StackError: a part could not start, or ended.
        NothingMeasuredError: no request of a load succeeded.
    """
    with node_of(run_dir, upstream, "tunnel", progress) as node:
        (idle,) = idle_load([node])
        measures = Growth(upstream, Bench(upstream, progress), node, idle, progress)
        tables = (measures.memory, measures.by_length, measures.by_streams, measures.neighbours, measures.arrivals)
        return "\n\n".join(table() for table in tables)
