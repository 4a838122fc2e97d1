"""Whether a node serves, for the health checks of containers and of whoever else runs it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_SECONDS = 2.0


def sockets_in(directory: Path) -> list[Path]:
    """Those of the workers that have been started there: a changed configuration may say something else by now."""
    return sorted(directory.glob("worker-*.sock"))


def workers_that_serve(sockets: Sequence[Path]) -> int:
    """How many of the workers behind ``sockets`` report SERVING; each has two seconds to answer."""
    with ThreadPoolExecutor(max(1, len(sockets))) as asking:
        return sum(asking.map(is_serving, sockets))


def is_serving(socket: Path) -> bool:
    """Whether the worker behind a socket reports SERVING by ``grpc.health.v1``."""
    with grpc.insecure_channel(f"unix:{socket}", options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            reply = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=_SECONDS)
        except grpc.RpcError:
            return False
    return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)
