"""Other programs that serve the Responses API from what a model server speaks, to measure beside the sidecar.

Each is installed from PyPI into an environment of its own, only for the bench; ``locks/`` pins the versions.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from stack.net import free_port
from stack.paths import LOCAL
from stack.process import Process
from stack.setup import install_python

LOCKS = Path(__file__).with_name("locks")


def install(name: str, progress: Callable[[str], None]) -> Path:
    """The directory of the programs of ``locks/<name>.lock``, which are installed unless they are there.

    Raises:
        StackError: a package cannot be had.
    """
    venv = LOCAL / f"{name}-venv"
    install_python(venv, LOCKS / f"{name}.lock", progress)
    return venv / "bin"


class Peer:
    """A running peer in front of the fake model server."""

    def __init__(self, name: str, arguments: list[str], run_dir: Path, progress: Callable[[str], None]) -> None:
        """Install and start it; ``{port}`` in the arguments is the port on which it is to listen.

        Raises:
            StackError: a package cannot be had.
        """
        self.port = free_port()
        program = install(name, progress) / name
        argv = [str(program), *(argument.format(port=self.port) for argument in arguments)]
        self.process = Process(name, argv, run_dir / f"{name}.log")

    def wait_ready(self) -> None:
        """Wait until it listens.

        Raises:
            StackError: it ended, or does not listen after 30 seconds.
        """
        self.process.wait_until(self._listens, 30)

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


def codex_relay(upstream_port: int, run_dir: Path, progress: Callable[[str], None]) -> Peer:
    """A bridge from Responses to Chat Completions, in Rust."""
    arguments = ["--port={port}", f"--upstream=http://127.0.0.1:{upstream_port}/v1"]
    return Peer("codex-relay", arguments, run_dir, progress)


def smg(upstream_port: int, run_dir: Path, progress: Callable[[str], None]) -> Peer:
    """A gateway in Rust. Over HTTP it hands Responses on to a worker that speaks them, and translates nothing."""
    arguments = [
        "launch",
        "--host=127.0.0.1",
        "--port={port}",
        f"--worker-urls=http://127.0.0.1:{upstream_port}",
        f"--prometheus-port={free_port()}",
        "--prometheus-host=127.0.0.1",
        "--log-level=warn",
        "--history-backend=none",
    ]
    return Peer("smg", arguments, run_dir, progress)
