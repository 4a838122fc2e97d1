"""What is measured: the real Envoy and the real sidecar in front of the fake Triton, and the same load without them."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

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
from stack.postgres import Postgres
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
class Snapshot:
    """Processor time used so far, in seconds: by each part, and by everything on the machine."""

    at: float
    parts: Mapping[str, float]
    machine: float


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

    def __init__(
        self,
        run_dir: Path,
        wire: Wire,
        rate: float,
        ttft: float,
        progress: Callable[[str], None],
        transport: str = "http2",
        *,
        accounts: Mapping[str, Any] | None = None,
        database: Postgres | None = None,
    ) -> None:
        """``rate`` and ``ttft`` as :mod:`bench.fake_triton` takes them, ``transport`` as the configuration does.

        ``accounts`` are the settings of those who may and what they have, without which there are none; ``database`` is
        the server that keeps them, where it is not the sidecar itself.
        """
        run_dir.mkdir(parents=True, exist_ok=True)
        self.rate = rate
        self._stamps = Stamps.of_file(TOKENIZER / "tokenizer.json")
        self._triton = FakeTriton(rate, ttft, run_dir / "fake_triton.log")
        self._stack = LocalStack(
            run_dir,
            models=[Model(name, name, TOKENIZER, CONTEXT_LENGTH) for name in (PACED, UNPACED)],
            wire=wire,
            triton_address=f"127.0.0.1:{self._triton.port}",
            accounts=accounts is not None,
            sidecar_settings={"transport": transport, **(accounts or {})},
            progress=progress,
        )
        self._database = database
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
        return uvloop.run(self._observe(load, model))

    async def _observe(self, load: Load, model: str) -> Measurement:
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._watch(load.steady)) if load.steady else None
            before = self._snapshot()
            observations = await run(load, self._connector(model))
            after = self._snapshot()
        if watch:
            before, after = watch.result()
        seen = figures(observations, load.streams, self.rate if model == PACED else 0)
        arrivals = [arrival for observation in observations for arrival in observation.arrivals]
        tokens = sum(before.at <= arrival <= after.at for arrival in arrivals)
        seconds = after.at - before.at
        spent = {part: after.parts[part] - before.parts[part] for part in before.parts}
        return Measurement(
            figures=seen,
            cpu_us={part: (spent[part] - idle * seconds) / tokens * 1e6 for part, idle in self.idle.items()},
            others=(after.machine - before.machine - sum(spent.values())) / seconds,
        )

    async def _watch(self, window: tuple[float, float]) -> tuple[Snapshot, Snapshot]:
        start, end = window
        await asyncio.sleep(start)
        before = self._snapshot()
        await asyncio.sleep(end - start)
        return before, self._snapshot()

    def _connector(self, model: str) -> Callable[[], Awaitable[Client]]:
        stack = self._stack

        async def connect() -> Client:
            return await ResponsesConnection.open(f"{stack.url}/responses", stack.api_key, model, self._stamps)

        return connect

    def _idle_load(self) -> dict[str, float]:
        """Processors' share that Envoy and the sidecar take with nothing to do, such as for health checks."""
        before = self._snapshot().parts
        time.sleep(_IDLE_SECONDS)
        after = self._snapshot().parts
        return {part: (after[part] - before[part]) / _IDLE_SECONDS for part in ("envoy", "sidecar", "database")}

    def _snapshot(self) -> Snapshot:
        parts = {
            "envoy": cpu_seconds(family([self._stack.envoy.process.pid])),
            "sidecar": cpu_seconds(family([self._stack.sidecar.process.pid])),
            "database": cpu_seconds(family([self._database.process.pid])) if self._database else 0.0,
            "fake_triton": cpu_seconds([self._triton.process.pid]),
            "load": time.process_time(),
        }
        return Snapshot(time.monotonic(), parts, machine_seconds())

    def _stop(self) -> None:
        self._stack.stop()
        self._triton.process.stop()
