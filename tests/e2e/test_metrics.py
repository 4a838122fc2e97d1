"""Metrics of a real node: what requests through Envoy count over both workers, and what stays of a killed one."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress

import httpx2
import pytest

from sidecar.config.load import load
from sidecar.telemetry.recent.steps import Count, read_steps
from stack.local import SCRIPTED, LocalStack
from stack.triton import Triton
from tests.core.telemetry.scraped import Scraped
from tests.e2e.client import Client, script
from tests.e2e.scraping import scrape

HANG = {"hang": True}
MODEL = {"model": "scripted"}


@pytest.fixture(scope="module")
def bare(triton: Triton, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Two workers without accounts."""
    address = f"127.0.0.1:{triton.grpc_port}"
    with LocalStack(
        tmp_path_factory.mktemp("bare"), models=[SCRIPTED], triton_address=address, accounts=False
    ) as stack:
        # Whatever a client sends as its key, nobody looks at it.
        stack.api_key = "none"
        yield stack


@pytest.fixture
async def client(stack: LocalStack) -> AsyncIterator[Client]:
    async with Client(stack) as client:
        yield client


async def until(stack: LocalStack, name: str, *expected: float, **labels: str) -> Scraped:
    """Scrape until a metric has one of the values: what is over is counted a moment after its client knows."""
    deadline = time.monotonic() + 20
    while True:
        # A worker that is killed cuts off who asks it at that moment.
        with suppress(httpx2.TransportError):
            now = await scrape(stack)
            if now.value(name, **labels) in expected:
                return now
            assert time.monotonic() < deadline, [sample for sample in now.samples if sample.name == name]
        await asyncio.sleep(0.05)


async def test_requests_are_counted(stack: LocalStack, client: Client) -> None:
    before = await scrape(stack)

    def more(now: Scraped, name: str, **labels: str) -> float:
        return now.value(name, **labels) - before.value(name, **labels)

    for _ in range(3):
        await client.events(script("some", " words"))
    await client.ask(script("whole"))
    assert (await client.ask(script({"error": "broken"}))).status_code >= 500
    assert (await client.ask({"model": "nobody-knows-it", "input": "hi"})).status_code == 404
    requests = "responses_requests_total"
    completed = {**MODEL, "surface": "node", "outcome": "completed"}
    now = await until(stack, requests, before.value(requests, **completed) + 4, **completed)
    assert more(now, requests, model="", outcome="error", code="model_not_available") == 1
    assert more(now, requests, **MODEL, outcome="error") == 1
    assert more(now, "responses_upstream_failures_total", **MODEL) == 1
    assert more(now, "responses_upstream_attempts_total", **MODEL, route="triton", outcome="completed") == 4
    assert more(now, "responses_admission_decisions_total", **MODEL, decision="admitted") == 5
    assert more(now, "gen_ai_server_time_to_first_token_seconds_count", gen_ai_request_model="scripted") == 4
    assert more(now, "gen_ai_server_request_duration_seconds_count", gen_ai_request_model="scripted") == 5
    assert more(now, "responses_tokens_total", **MODEL, kind="output") > 4
    assert more(now, "responses_store_duration_seconds_count", access="write", outcome="ok") > 0
    assert now.value("responses_store_up") == now.value("responses_model_ready", **MODEL) == 1
    assert "nobody-knows-it" not in now.labels("model")


async def test_workers_come_together_and_a_killed_one_leaves_its_counts(bare: LocalStack) -> None:
    requests, completed = "responses_requests_total", {**MODEL, "outcome": "completed"}
    async with Client(bare) as client, AsyncExitStack() as streams:
        answered = (await scrape(bare)).value(requests, **completed) + 8
        for _ in range(8):
            assert (await client.ask(script("whole"))).status_code == 200
        both = await until(bare, requests, answered, **completed)
        assert both.value("responses_workers") == both.value("responses_worker_starts_total") == 2
        # One that is not referred to any more is closed.
        held = [await streams.enter_async_context(client.stream(script("some", HANG))) for _ in range(8)]
        for stream in held:
            await stream.until(b"output_text.delta")
        await until(bare, "responses_streams_in_flight", 8)
        os.kill(bare.sidecar.worker_pids()[0], signal.SIGKILL)
        # Envoy gives to whom has fewer, more or less.
        other = await until(bare, "responses_streams_in_flight", *range(1, 8))
        assert other.value(requests, **completed) == answered
        # So do the steps of the status page.
        steps = read_steps(load(bare.sidecar.config).recent, time.time())
        assert sum(step[Count.REQUESTS] for step in steps) >= answered
    await until(bare, "responses_worker_starts_total", 3)
    again = await until(bare, "responses_workers", 2)
    assert again.value(requests, **completed) == answered
