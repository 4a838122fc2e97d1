"""What is measured: the real Envoy and the real sidecar in front of the fake Triton, and the same load without them."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import uvloop

from bench.cpu import cpu_seconds, family, machine_seconds
from bench.direct import DirectConnection
from bench.fake_triton import PACED, UNPACED
from bench.figures import Figures, figures
from bench.http1 import ResponsesConnection
from bench.load import Client, Load, run
from bench.stamps import Stamps
from stack.envoy import Wire
from stack.local import LocalStack
from stack.net import free_port
from stack.paths import ROOT, TOKENIZER
from stack.process import Process
from stack.sidecar import Model

CONTEXT_LENGTH = 8192
_IDLE_SECONDS = 2.0


class FakeTriton:
    """The fake Triton as a process of its own."""

    def __init__(self, rate: float, ttft: float, log: Path) -> None:
        """``rate`` and ``ttft`` as :mod:`bench.fake_triton` takes them."""
        self.port = free_port()
        options = {"port": self.port, "tokenizer": TOKENIZER / "tokenizer.json", "rate": rate, "ttft": ttft}
        arguments = [f"--{name}={value}" for name, value in options.items()]
        argv = [sys.executable, "-m", "bench.fake_triton", *arguments]
        self.process = Process("The fake Triton", argv, log, {"PYTHONPATH": str(ROOT)})

    def wait_ready(self) -> None:
        """Wait until it listens.

        Raises:
            StackError: it ended, or does not listen after 30 seconds.
        """
        self.process.wait_until(self._listens, 30)

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


@dataclass(frozen=True)
class Measurement:
    """One run through Envoy and the sidecar.

    ``cpu_us`` is the processor time per token by part, in µs, above what the part takes when idle. ``others`` is how
    many processors were busy with anything that is no part of the bench: a large number marks a disturbed run.
    """

    figures: Figures
    cpu_us: Mapping[str, float]
    others: float


class Rig:
    """All processes of the bench, as a context manager."""

    def __init__(self, run_dir: Path, wire: Wire, rate: float, ttft: float, progress: Callable[[str], None]) -> None:
        run_dir.mkdir(parents=True, exist_ok=True)
        self.rate = rate
        self._stamps = Stamps.of_file(TOKENIZER / "tokenizer.json")
        self._triton = FakeTriton(rate, ttft, run_dir / "fake_triton.log")
        self._stack = LocalStack(
            run_dir,
            models=[Model(name, name, TOKENIZER, CONTEXT_LENGTH) for name in (PACED, UNPACED)],
            wire=wire,
            triton_address=f"127.0.0.1:{self._triton.port}",
            progress=progress,
        )
        self.idle: dict[str, float] = {}

    def __enter__(self) -> Self:
        try:
            self._triton.wait_ready()
            self._stack.start()
            self.idle = self._idle_load()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def direct(self, load: Load) -> Figures:
        """A paced load straight to the fake Triton."""

        async def observe() -> Figures:
            connection = await DirectConnection.open(self._triton.port, PACED, self._stamps)

            async def connect() -> Client:
                return connection

            return figures(await run(load, connect), load.streams, self.rate)

        return uvloop.run(observe())

    def through(self, load: Load, model: str) -> Measurement:
        """A load of one of the fake Triton's models through Envoy and the sidecar, with what it cost."""
        rate = self.rate if model == PACED else 0
        started, machine, used = time.monotonic(), machine_seconds(), self._used()
        observations = uvloop.run(run(load, self._connector(model)))
        seconds, spent = time.monotonic() - started, self._since(used)
        seen = figures(observations, load.streams, rate)
        cpu_us = {part: (spent[part] - self.idle[part] * seconds) / seen.tokens * 1e6 for part in self.idle}
        others = (machine_seconds() - machine - sum(spent.values())) / seconds
        return Measurement(seen, cpu_us, others)

    def _connector(self, model: str) -> Callable[[], Awaitable[Client]]:
        stack = self._stack

        async def connect() -> Client:
            return await ResponsesConnection.open(f"{stack.url}/responses", stack.api_key, model, self._stamps)

        return connect

    def _idle_load(self) -> dict[str, float]:
        """Processors' share that Envoy and the sidecar take with nothing to do, such as for health checks."""
        used = self._used()
        time.sleep(_IDLE_SECONDS)
        spent = self._since(used)
        return {part: spent[part] / _IDLE_SECONDS for part in ("envoy", "sidecar")}

    def _used(self) -> dict[str, float]:
        return {
            "envoy": cpu_seconds(family([self._stack.envoy.process.pid])),
            "sidecar": cpu_seconds(family([self._stack.sidecar.process.pid])),
            "fake_triton": cpu_seconds([self._triton.process.pid]),
            "load": time.process_time(),
        }

    def _since(self, before: Mapping[str, float]) -> dict[str, float]:
        return {part: used - before[part] for part, used in self._used().items()}

    def _stop(self) -> None:
        self._stack.stop()
        self._triton.process.stop()
