"""The fake model server as a process, told before each load how to answer."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from bench import native, script
from bench.loads import TTFT, Load
from bench.stamps import Stamps
from stack.net import DIRECT, free_port
from stack.paths import ROOT, TOKENIZER
from stack.process import Process


class Upstream:
    """A running fake model server, as a context manager; what it speaks tells :mod:`bench.script`."""

    def __init__(self, run_dir: Path, progress: Callable[[str], None]) -> None:
        """Write its script and start it."""
        run_dir.mkdir(parents=True, exist_ok=True)
        self.script = run_dir / "script.bin"
        script.write(self.script, Stamps.of_file(TOKENIZER / "tokenizer.json"))
        self.grpc_port, self.http_port = free_port(), free_port()
        argv = [*native.command("upstream", progress), str(self.script), str(self.grpc_port), str(self.http_port)]
        self.process = Process(
            "The fake model server", argv, run_dir / "upstream.log", {"PYTHONPATH": str(ROOT)}, directory=ROOT
        )

    def __enter__(self) -> Self:
        """Wait until it listens.

        Raises:
            StackError: it ended, or does not listen after 30 seconds.
        """
        try:
            self.process.wait_until(self._listens, 30)
        except BaseException:
            self.process.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.stop()

    def answer_by(self, load: Load) -> None:
        """Answer the requests that come from now on as a load asks."""
        interval, ttft = round(load.interval * 1e9), round(TTFT * 1e9)
        path = f"/cadence/{interval}/{ttft}/{load.tokens}/{load.in_step:d}"
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_port}{path}", b"")
        with DIRECT.open(request, timeout=5) as answer:
            answer.read()

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.http_port)) == 0
