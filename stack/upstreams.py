"""Upstreams of the local stack that speak the Responses API themselves: llama.cpp's server, and the scripted one."""

from __future__ import annotations

import http.client
import json
import secrets
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any, Protocol

from stack import triton
from stack.net import DIRECT, free_port
from stack.paths import ROOT
from stack.process import Process
from stack.sidecar import NativeModel

_READY_SECONDS = 60.0

NATIVE_SMOLLM2 = NativeModel(
    "smollm2-135m-native",
    [{"upstream": "llama", "model": "smollm2-135m"}],
    context_length=4096,
    # It reads a prompt as slowly as the same model behind Triton.
    settings={"first_token_timeout": 600.0, "catalog": {"slug": "huggingface/smollm2-135m-native"}},
)
"""The CPU model on llama.cpp's server, which there knows neither tools nor formats."""

_ALL = ["text.format", "images", "tools", "web_search", "compaction"]

NATIVE_SCRIPTED = NativeModel(
    "native-scripted",
    [{"upstream": "scripted", "model": "only", "features": _ALL}],
    context_length=32768,
    settings={"catalog": {"slug": "scripted/native"}},
)
"""The scripted upstream's one model, certified for everything."""

NATIVE_FAILOVER = NativeModel(
    "native-failover",
    [{"upstream": "scripted", "model": "first"}, {"upstream": "scripted", "model": "second", "features": ["tools"]}],
    context_length=32768,
    settings={"catalog": {"slug": "scripted/failover"}},
)
"""A model with two routes to the scripted upstream; the second alone is certified for tools."""

NATIVE_REROUTED = NativeModel(
    "native-rerouted",
    [{"upstream": "gone", "model": "only"}, {"upstream": "scripted", "model": "only"}],
    context_length=32768,
    # An answer that has begun may not pause for long.
    settings={"catalog": {"slug": "scripted/rerouted"}, "token_timeout": 1.0},
)
"""A model whose first upstream is not there."""


class Serving(Protocol):
    """What serves the models of a stack as an upstream, and runs already."""

    @property
    def section(self) -> dict[str, Any]:
        """The member of ``upstreams`` in the sidecar's configuration."""


class Gone:
    """An upstream that refuses all connections: its port is taken, and nobody listens on it."""

    def __init__(self) -> None:
        self._taken = socket.socket()
        self._taken.bind(("127.0.0.1", 0))
        self.section = {"name": "gone", "url": f"http://127.0.0.1:{self._taken.getsockname()[1]}/v1"}


class Upstream:
    """An upstream with a process of its own. ``name`` is what routes call it, ``key`` what it must be sent."""

    def __init__(self, name: str, run_dir: Path) -> None:
        self.name = name
        self.port = free_port()
        self.key = f"sk-{name}-{secrets.token_hex(16)}"
        self.key_file = run_dir / f"{name}.key"
        run_dir.mkdir(parents=True, exist_ok=True)
        self.key_file.touch(mode=0o600)
        self.key_file.write_text(f"{self.key}\n")
        self.process = self._start(run_dir / f"{name}.log")

    @property
    def section(self) -> dict[str, Any]:
        """See :class:`Serving`."""
        url = f"http://127.0.0.1:{self.port}/v1"
        return {"name": self.name, "url": url, "key_file": str(self.key_file.resolve())}

    def wait_ready(self) -> None:
        """Wait until it answers.

        Raises:
            StackError: it ended or was not ready in time.
        """
        self.process.wait_until(self._answers, _READY_SECONDS)

    def _answers(self) -> bool:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/models", headers={"authorization": f"Bearer {self.key}"}
        )
        try:
            with DIRECT.open(request, timeout=5):
                return True
        except (http.client.HTTPException, OSError):
            return False

    def _start(self, log: Path) -> Process:
        raise NotImplementedError


class LlamaServer(Upstream):
    """llama.cpp's server with the CPU model, out of Triton's environment, which has both."""

    def __init__(self, venv: Path, run_dir: Path) -> None:
        self._venv = venv
        super().__init__("llama", run_dir)

    def _start(self, log: Path) -> Process:
        python, weights = triton.cpu_model(self._venv)
        script = ROOT / "triton" / "tools" / "llama_server.py"
        arguments = [str(weights), str(self.port), str(self.key_file), "smollm2-135m"]
        return Process("llama.cpp's server", [str(python), str(script), *arguments], log)


class ScriptedUpstream(Upstream):
    """The upstream of ``stack/native/``."""

    def __init__(self, run_dir: Path) -> None:
        self._diary = run_dir / "scripted-upstream.jsonl"
        super().__init__("scripted", run_dir)

    def _start(self, log: Path) -> Process:
        arguments = [str(self.port), str(self._diary), self.key]
        return Process("The scripted upstream", [sys.executable, "-m", "stack.native", *arguments], log, directory=ROOT)

    def diary(self) -> list[dict[str, Any]]:
        """What it was sent, and how each request ended, in order."""
        return [json.loads(line) for line in self._diary.read_text().splitlines()]
