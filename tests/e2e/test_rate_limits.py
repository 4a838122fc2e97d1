"""Envoy's own rate limits count the tokens that the sidecar tells it of, as docs/billing.md says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
import yaml
from envoy.service.ratelimit.v3.rls_pb2 import RateLimitRequest, RateLimitResponse
from envoy.service.ratelimit.v3.rls_pb2_grpc import RateLimitServiceServicer, add_RateLimitServiceServicer_to_server

from sidecar.envoy.render import render
from sidecar.envoy.settings import EnvoySettings
from stack.envoy import Envoy
from stack.local import LocalStack
from stack.net import free_port
from stack.paths import socket_directory
from tests.e2e.client import script
from tests.e2e.raw_http import exchange, request
from tests.e2e.test_envoy import PATH, wait_for_sidecar

LIMITS = {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute",
    "rate_limits": [
        {
            "actions": [{"generic_key": {"descriptor_value": "tokens"}}],
            "apply_on_stream_done": True,
            "hits_addend": {"format": "%DYNAMIC_METADATA(responses:total_tokens)%"},
        }
    ],
}


class RateLimits(RateLimitServiceServicer):  # type: ignore[misc]
    """A rate limit service that notes how many hits it is told of, and lets everything pass."""

    def __init__(self) -> None:
        self.hits: SimpleQueue[int] = SimpleQueue()

    def ShouldRateLimit(self, request: RateLimitRequest, _context: object) -> RateLimitResponse:
        for descriptor in request.descriptors:
            self.hits.put(descriptor.hits_addend.value if descriptor.HasField("hits_addend") else request.hits_addend)
        return RateLimitResponse(overall_code=RateLimitResponse.OK)


def configuration(chosen: EnvoySettings, service: Path) -> str:
    """Envoy's configuration with a limit of the virtual host, kept by the service on a socket."""
    config = yaml.safe_load(render(chosen))
    resources = config["static_resources"]
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    host = manager["route_config"]["virtual_hosts"][0]
    host["typed_per_filter_config"]["envoy.filters.http.ratelimit"] = LIMITS
    limit_filter: dict[str, Any] = {
        "name": "envoy.filters.http.ratelimit",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit",
            "domain": "responses",
            "rate_limit_service": {
                "grpc_service": {"envoy_grpc": {"cluster_name": "rate_limits"}},
                "transport_api_version": "V3",
            },
        },
    }
    manager["http_filters"].insert(-1, limit_filter)
    sidecar = next(cluster for cluster in resources["clusters"] if cluster["name"] == "sidecar")
    endpoint = {"endpoint": {"address": {"pipe": {"path": str(service)}}}}
    resources["clusters"].append(
        {
            "name": "rate_limits",
            "type": "STATIC",
            "typed_extension_protocol_options": sidecar["typed_extension_protocol_options"],
            "load_assignment": {"cluster_name": "rate_limits", "endpoints": [{"lb_endpoints": [endpoint]}]},
        }
    )
    return yaml.safe_dump(config, sort_keys=False)


@contextmanager
def limited(stack: LocalStack, run_dir: Path) -> Iterator[tuple[int, RateLimits]]:
    """A second Envoy before the sidecar of ``stack``, which asks a rate limit service; its port."""
    sockets = socket_directory(run_dir)
    service, limits = sockets / "limits.sock", RateLimits()
    server = grpc.server(ThreadPoolExecutor(2))
    add_RateLimitServiceServicer_to_server(limits, server)
    server.add_insecure_port(f"unix:{service}")
    server.start()
    chosen = replace(stack.envoy.settings, port=free_port(), sockets=sockets, log_path=run_dir / "access.log")
    envoy = Envoy(chosen, run_dir, configuration(chosen, service))
    try:
        envoy.wait_ready()
        wait_for_sidecar(envoy)
        yield chosen.port, limits
    finally:
        envoy.process.stop()
        server.stop(0)


@pytest.mark.parametrize("stream", [True, False])
def test_tokens_are_hits(stack: LocalStack, tmp_path: Path, stream: bool) -> None:
    with limited(stack, tmp_path) as (port, limits):
        body = json.dumps(script("one", " two", " three", stream=stream)).encode()
        json_type = ["Content-Type: application/json"]
        reply = exchange(port, [request("POST", PATH, key=stack.api_key, headers=json_type, body=body)])
        assert reply.status == 200
        told = json.loads(reply.body.decode().rpartition("data: ")[2])
        usage = (told["response"] if stream else told)["usage"]
        assert limits.hits.get(timeout=10) == usage["total_tokens"] > 3
