"""A few thousand mixed requests leave nothing behind: no session, no socket, no memory that grows."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stack.local import SCRIPTED, LocalStack
from tests.core.sse import whole_stream
from tests.e2e.client import Client, eventually, script

pytestmark = pytest.mark.timeout(600)

REQUESTS = 3000
AT_ONCE = 32

# Each kind of request, and the status or the last event it must end with; None where the client leaves.
KINDS: dict[str, tuple[Any, Any]] = {
    "whole": (script("one ", "two"), 200),
    "stream": (script("one ", "two", stream=True), "response.completed"),
    "long stream": (script({"repeat": [50, "word ", 0.002]}, stream=True), "response.completed"),
    "cut": (script({"split_ids": "one two three"}, max_output_tokens=2, stream=True), "response.incomplete"),
    "malformed": (b"{", 400),
    "unknown model": ({"model": "none", "input": "x"}, 404),
    "error first": (script({"error": "boom"}, stream=True), 503),
    "error later": (script("one", {"error": "boom"}, stream=True), "error"),
    "silent": (script({"sleep": 30}), 503),
    "silent later": (script("one", {"sleep": 30}, stream=True), "error"),
    "leaves early": (script({"sleep": 30}, stream=True), None),
    "leaves later": (script({"repeat": [200, "word ", 0.01]}, stream=True), None),
}
WEIGHTS = [20, 30, 10, 5, 5, 5, 5, 5, 1, 1, 6, 7]


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    model = replace(SCRIPTED, settings={"first_token_timeout": 4.0, "token_timeout": 4.0})
    with LocalStack(tmp_path_factory.mktemp("soak"), models=[model]) as stack:
        yield stack


async def ask(client: Client, kind: str) -> Any:
    """Send a request of a kind; its outcome."""
    body, expected = KINDS[kind]
    if expected is None:
        try:
            async with asyncio.timeout(random.uniform(0.02, 0.3)):
                await client.ask(body)
        except TimeoutError:
            return None
        return "was not left"
    answer = await client.ask(body)
    if answer.headers["content-type"].startswith("text/event-stream"):
        return whole_stream(answer.content)[-1].type
    return answer.status_code


def counts(stack: LocalStack) -> dict[str, int]:
    """What a leak would raise: open files of the workers, and the requests and connections that Envoy holds."""
    files = [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in stack.sidecar.worker_pids()]
    active = [
        "http.ingress.downstream_rq_active",
        "http.egress.downstream_rq_active",
        "cluster.triton.upstream_rq_active",
    ]
    stats = stack.envoy.stats("(http|cluster)")
    ext_proc = ["cluster.sidecar.upstream_rq_active", "cluster.egress_tunnel.upstream_cx_active"]
    return {"files": sum(files), **{name: stats[name] for name in [*active, *ext_proc]}}


def memory(stack: LocalStack) -> int:
    """Resident memory of the workers, in KiB."""
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in stack.sidecar.worker_pids()]
    return sum(int(line.split()[1]) for status in statuses for line in status.splitlines() if line.startswith("VmRSS"))


async def soak(stack: LocalStack, requests: int, seed: int) -> Counter[tuple[str, Any]]:
    """Send mixed requests, some at a time; how often each kind ended how."""
    kinds = iter(random.Random(seed).choices(list(KINDS), WEIGHTS, k=requests))
    outcomes: Counter[tuple[str, Any]] = Counter()

    async def one_after_another(client: Client) -> None:
        for kind in kinds:
            outcomes[kind, await ask(client, kind)] += 1

    async with Client(stack) as client:
        await asyncio.gather(*(one_after_another(client) for _ in range(AT_ONCE)))
    return outcomes


async def test_a_soak_ends_with_the_counts_it_began_with(soaked: LocalStack) -> None:
    await soak(soaked, 300, seed=1)
    await eventually(lambda: not counts(soaked)["http.ingress.downstream_rq_active"])
    before, memory_before = counts(soaked), memory(soaked)

    outcomes = await soak(soaked, REQUESTS, seed=2)

    assert dict(outcomes.keys()) == {kind: expected for kind, (_, expected) in KINDS.items()}
    assert len(outcomes) == len(KINDS)
    await eventually(
        lambda: counts(soaked)["files"] <= before["files"] and not counts(soaked)["cluster.triton.upstream_rq_active"]
    )
    assert counts(soaked) | {"files": 0} == before | {"files": 0}
    assert memory(soaked) - memory_before < 20 * 1024

    soaked.sidecar.process.stop()
    drains = [line for line in soaked.sidecar.process.log.read_text().splitlines() if "draining" in line]
    assert len(drains) == soaked.workers
    assert all("draining 0 sessions" in line for line in drains)
