"""The way of spans to a collector that does not answer: nothing waits for it."""

from __future__ import annotations

import asyncio
import socket

from sidecar.config.telemetry import OtlpConfig
from sidecar.exchange.events import ClientGone
from sidecar.telemetry.traces.exporting import Exporting
from tests.core import kit


async def test_the_end_of_a_worker_does_not_wait_for_a_collector_that_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces"
        exporting = Exporting(OtlpConfig(endpoint=url), "n1", 0)
        exchange = kit.exchange()
        exchange.report.surface = "node"
        refused = kit.request(model="nobody-knows-it")
        exporting.tracing.observe(exchange, refused, exchange.handle(refused))
        exchange.handle(ClientGone())
        exporting.tracing.observe(exchange, ClientGone(), [])
        await asyncio.wait_for(exporting.close(0.1), 30)
        silent.accept()[0].close()
