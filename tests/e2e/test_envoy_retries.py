"""A worker that has just died costs nobody a request: Envoy's retries reach the one that lives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from sidecar.envoy.render import render
from sidecar.envoy.settings import EnvoySettings
from stack.envoy import Envoy
from stack.net import free_port
from stack.paths import socket_directory

_REQUESTS = 2000
_HELD = 4


@asynccontextmanager
async def _live(socket: Path) -> AsyncIterator[asyncio.Semaphore]:
    """A host that answers all requests but those for ``/held``, which it counts."""
    held = asyncio.Semaphore(0)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            if head.startswith("GET /held"):
                held.release()
                await reader.read()
                break
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_unix_server(answer, socket):
        yield held


def _configuration(settings: EnvoySettings) -> dict[str, Any]:
    """Envoy's, cut down to how it spreads over the workers, and tries another: what it knows of one that just died."""
    whole = yaml.safe_load(render(settings))
    resources = whole["static_resources"]
    (cluster,) = (cluster for cluster in resources["clusters"] if cluster["name"] == "sidecar")
    # Nobody has found out yet; and the hosts here speak HTTP/1.1.
    del cluster["health_checks"], cluster["typed_extension_protocol_options"]
    ingress = resources["listeners"][0]
    manager = ingress["filter_chains"][0]["filters"][0]["typed_config"]
    filters = {part["name"]: part["typed_config"] for part in manager["http_filters"]}
    asking = filters["envoy.filters.http.ext_proc"]["extension_config"]["typed_config"]
    retry = asking["grpc_service"]["retry_policy"]
    route = {"match": {"prefix": "/"}, "route": {"cluster": "sidecar", "timeout": "0s", "retry_policy": retry}}
    plain = {
        "@type": manager["@type"],
        "stat_prefix": "ingress",
        "http_filters": [manager["http_filters"][-1]],
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
    }
    ingress["filter_chains"] = [{"filters": [{"name": "plain", "typed_config": plain}]}]
    return {"admin": whole["admin"], "static_resources": {"listeners": [ingress], "clusters": [cluster]}}


@pytest.fixture
def settings(tmp_path: Path) -> EnvoySettings:
    sockets = socket_directory(tmp_path)
    return EnvoySettings(
        port=free_port(),
        sockets=sockets,
        worker_sockets=[sockets / "live.sock", sockets / "dead.sock"],
        triton=[],
        log_path=tmp_path / "access.log",
        threads=1,
    )


async def test_requests_miss_a_worker_that_has_just_died(settings: EnvoySettings, tmp_path: Path) -> None:
    """The live one has requests under way, so that the dead one, which has none, is preferred."""
    envoy = Envoy(settings, tmp_path, json.dumps(_configuration(settings)))
    limits = httpx2.Limits(max_connections=None)
    try:
        async with (
            _live(settings.worker_sockets[0]) as held,
            httpx2.AsyncClient(base_url=f"http://127.0.0.1:{settings.port}", limits=limits, timeout=60) as client,
        ):
            await asyncio.to_thread(envoy.wait_ready)
            waiting = [asyncio.create_task(client.get("/held")) for _ in range(_HELD)]
            for _ in waiting:
                await asyncio.wait_for(held.acquire(), 10)
            statuses = [(await client.get("/")).status_code for _ in range(_REQUESTS)]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        refused = envoy.stats("cluster.sidecar.upstream_cx_connect_fail")
    finally:
        envoy.process.stop()
    assert {status: statuses.count(status) for status in set(statuses)} == {200: _REQUESTS}
    # Or it was never drawn, and nothing is shown.
    assert refused["cluster.sidecar.upstream_cx_connect_fail"] > _REQUESTS / 4
