"""Whether a node serves, for the health checks of containers and of whoever else runs it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar.config.models import Config

_SECONDS = 2.0


def workers_that_serve(config: Config) -> int:
    """How many workers of the node on this machine report SERVING; each has two seconds to answer."""
    sockets = [config.socket(index) for index in range(config.workers)]
    with ThreadPoolExecutor(len(sockets)) as asking:
        return sum(asking.map(is_serving, sockets))


def is_serving(socket: Path) -> bool:
    """Whether the worker behind a socket reports SERVING by ``grpc.health.v1``."""
    with grpc.insecure_channel(f"unix:{socket}", options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            reply = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=_SECONDS)
        except grpc.RpcError:
            return False
    return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)
