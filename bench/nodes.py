"""What is measured: the processes between a client and the fake model server, one kind after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import peers, plain_envoy
from bench.script import MODEL
from bench.upstream import Upstream
from sidecar.config.processors import shares, usable_processors
from sidecar.envoy.settings import Wire
from stack.local import LocalStack
from stack.paths import ROOT, TOKENIZER, socket_directory
from stack.postgres import Postgres
from stack.process import Process
from stack.sidecar import Model, NativeModel

CONTEXT_LENGTH = 8192
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Node:
    """Something that serves the Responses API on a port of this machine, under ``path``.

    ``parts`` are the leading processes by part. ``workers`` are the sidecar's, where there is one.
    """

    port: int
    path: str
    parts: Mapping[str, int]
    key: str = "none"
    workers: Sequence[int] = ()


@contextmanager
def sidecar(
    run_dir: Path,
    upstream: Upstream,
    wire: Wire,
    transport: str,
    progress: Progress,
    *,
    accounts: Mapping[str, Any] | None = None,
    database: Postgres | None = None,
) -> Iterator[Node]:
    """Envoy and the sidecar, which speaks ``transport`` to it.

    ``accounts`` are the settings of those who may and what they have, without which there are none; ``database`` is the
    server that keeps them, where it is not the sidecar itself.

    Raises:
        StackError: a part could not start, or ended.
    """
    share = shares(usable_processors())
    stack = LocalStack(
        run_dir,
        models=[Model(MODEL, MODEL, TOKENIZER, CONTEXT_LENGTH)],
        wire=wire,
        workers=share.workers,
        envoy_settings={"threads": share.envoy_threads},
        triton_address=f"127.0.0.1:{upstream.grpc_port}",
        accounts=accounts is not None,
        sidecar_settings={"transport": transport, **(accounts or {})},
        progress=progress,
    )
    with stack:
        parts = {"envoy": stack.envoy.process.pid, "sidecar": stack.sidecar.process.pid}
        if database:
            parts["database"] = database.process.pid
        workers = stack.sidecar.worker_pids()
        yield Node(stack.port, "/v1/infer", parts, stack.api_key or "none", workers)


@dataclass(frozen=True)
class _ModelServer:
    """The fake model server's own Responses as an upstream of the sidecar's."""

    section: dict[str, Any]


@contextmanager
def passing(run_dir: Path, upstream: Upstream, progress: Progress) -> Iterator[Node]:
    """Envoy and the sidecar, which passes on the model server's own Responses: what smg does.

    Raises:
        StackError: a part could not start, or ended.
    """
    share = shares(usable_processors())
    stack = LocalStack(
        run_dir,
        models=[Model("another", MODEL, TOKENIZER, CONTEXT_LENGTH)],
        native_models=[NativeModel(MODEL, [{"upstream": "server", "model": MODEL}], CONTEXT_LENGTH)],
        upstreams=[_ModelServer({"name": "server", "url": f"http://127.0.0.1:{upstream.http_port}/v1"})],
        workers=share.workers,
        envoy_settings={"threads": share.envoy_threads},
        triton_address=f"127.0.0.1:{upstream.grpc_port}",
        accounts=False,
        progress=progress,
    )
    with stack:
        parts = {"envoy": stack.envoy.process.pid, "sidecar": stack.sidecar.process.pid}
        yield Node(stack.port, "/v1", parts, workers=stack.sidecar.worker_pids())


@contextmanager
def straight(_run_dir: Path, upstream: Upstream, _progress: Progress) -> Iterator[Node]:
    """Nothing: the model server's own Responses, which is the base line of what is added."""
    yield Node(upstream.http_port, "/v1", {})


@contextmanager
def envoy_alone(run_dir: Path, upstream: Upstream, _progress: Progress) -> Iterator[Node]:
    """An Envoy that forwards the model server's own Responses.

    Raises:
        StackError: it could not start.
    """
    envoy = plain_envoy.start(run_dir, upstream.http_port)
    try:
        yield Node(envoy.settings.port, "/v1", {"envoy": envoy.process.pid})
    finally:
        envoy.process.stop()


@contextmanager
def echo(run_dir: Path, upstream: Upstream, _progress: Progress) -> Iterator[Node]:
    """The same, and an ext_proc server that hands the answer back as it is (:mod:`bench.echo`).

    Raises:
        StackError: a part could not start.
    """
    socket = socket_directory(run_dir) / "echo.sock"
    socket.unlink(missing_ok=True)
    server = Process(
        "The echo", [sys.executable, "-m", "bench.echo", str(socket)], run_dir / "echo.log", directory=ROOT
    )
    with ExitStack() as stack:
        stack.callback(server.stop)
        server.wait_until(socket.exists, 30)
        envoy = plain_envoy.start(run_dir, upstream.http_port, socket)
        stack.callback(envoy.process.stop)
        yield Node(envoy.settings.port, "/v1", {"envoy": envoy.process.pid, "sidecar": server.pid})


@contextmanager
def codex_relay(run_dir: Path, upstream: Upstream, progress: Progress) -> Iterator[Node]:
    """Envoy and codex-relay, which speaks Chat Completions to the model server.

    Raises:
        StackError: a part could not be had or started.
    """
    with _running(peers.codex_relay(upstream.http_port, run_dir, progress)) as bridge:
        envoy = plain_envoy.start(run_dir, bridge.port)
        try:
            yield Node(envoy.settings.port, "/v1", {"envoy": envoy.process.pid, "bridge": bridge.process.pid})
        finally:
            envoy.process.stop()


@contextmanager
def smg(run_dir: Path, upstream: Upstream, progress: Progress) -> Iterator[Node]:
    """SMG without an Envoy, since it is a gateway itself; it hands on the model server's own Responses.

    Raises:
        StackError: it could not be had or started.
    """
    with _running(peers.smg(upstream.http_port, run_dir, progress)) as gateway:
        yield Node(gateway.port, "/v1", {"bridge": gateway.process.pid})


@contextmanager
def _running(peer: peers.Peer) -> Iterator[peers.Peer]:
    try:
        peer.wait_ready()
        yield peer
    finally:
        peer.process.stop()
