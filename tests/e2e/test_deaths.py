"""Whatever dies, the ledger is what clients received: workers, Triton and the database are killed under real streams.

A token is counted when it has been handed to Envoy. Most streams here stand still when something dies, so that what was
handed over is what the client has, and the two are compared exactly. Of a stream that is killed while it moves the
client may have one token more than the ledger, the one whose mark was not stored any more, and fewer by what was on its
way through Envoy.

On SQLite the node refuses what it cannot account for, on PostgreSQL it spools.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from sidecar.store.engine import sqlite_file
from stack.local import SCRIPTED, LocalStack
from stack.postgres import Postgres
from tests.core.sse import parse
from tests.e2e.client import Client, Stream, error_of, eventually, script
from tests.e2e.ledger import LocalLedger
from tests.e2e.storing import Talks, check_records, check_stored, kill_at_random

HANG = {"hang": True}
# Of an end id nothing shows that could be counted.
NO_END = {"no_end_id": True}
INPUT, OUTPUT = Decimal("0.15"), Decimal("0.60")
PRICES = [{"from": "2020-01-01", "input": str(INPUT), "output": str(OUTPUT)}]
MOVING = 200


@dataclass
class Node:
    """A stack, its ledger, and what its clients have received: tokens by the response's id."""

    stack: LocalStack
    ledger: LocalLedger
    client: Client
    store_down: Callable[[], Any]
    spools: bool
    received: Counter[str]
    moved: set[str]

    def note(self, stream: Stream) -> str:
        """Count what has come in ``stream``; the response's id."""
        events = parse(stream.received[: stream.received.rfind(b"\n\n") + 2])
        id: str = events[0].data["response"]["id"].removeprefix("resp_")
        self.received[id] = sum(
            event.data["delta"].count(" w") for event in events if event.type == "response.output_text.delta"
        )
        return id

    @asynccontextmanager
    async def standing(self, tokens: int, streams: int) -> AsyncIterator[list[Stream]]:
        """Streams that have brought ``tokens`` tokens and then stand still; at the end their clients leave."""
        async with AsyncExitStack() as leaving:
            body = script({"repeat": [tokens, " w", 0]}, HANG)
            opened = await asyncio.gather(
                *(leaving.enter_async_context(self.client.stream(body)) for _ in range(streams))
            )
            await asyncio.gather(*(self._read(stream, tokens) for stream in opened))
            yield opened

    async def _read(self, stream: Stream, tokens: int) -> None:
        assert stream.response.status_code == 200, await stream.response.aread()
        await stream.until(b"response.created")
        while self.received[self.note(stream)] < tokens:
            stream.received += await anext(stream._bytes)

    def settled(self, outcome: str) -> int:
        return len(self.ledger.rows("SELECT id FROM usage_records WHERE outcome = :outcome", outcome=outcome))

    async def well(self) -> None:
        """Wait until both workers answer."""
        await eventually(lambda: len(self.stack.sidecar.worker_pids()) == 2, 60)
        membership = "cluster.sidecar.membership_healthy"
        await eventually(lambda: self.stack.envoy.stats(membership)[membership] == 2, 60)
        async with asyncio.timeout(60):
            while {await self.status() for _ in range(6)} != {200}:
                await asyncio.sleep(0.1)

    async def status(self) -> int | None:
        try:
            return int((await self.client.ask(script("ok"))).status_code)
        except httpx2.TransportError:
            return None


@pytest.fixture
def store_down(store_url: str, request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Takes the store away as long as its context lasts."""
    file = sqlite_file(store_url)

    @contextmanager
    def locked() -> Iterator[None]:
        assert file is not None
        with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield

    @contextmanager
    def killed() -> Iterator[None]:
        postgres: Postgres = request.getfixturevalue("postgres")
        postgres.kill()
        try:
            yield
        finally:
            postgres.start()

    return locked if file is not None else killed


@pytest.fixture
async def node(
    store_url: str, store_down: Callable[[], Any], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Node]:
    models = [replace(SCRIPTED, settings={"prices": PRICES})]
    spools = sqlite_file(store_url) is None
    settings = {"store": {"url": store_url, "when_down": "spool" if spools else "refuse"}, "drain": 1.0}
    with LocalStack(
        tmp_path_factory.mktemp("deaths"),
        models=models,
        # Each engine with a wire of its own: what one wire shows of either, the other would show again.
        wire="origin" if spools else "tunnel",
        sidecar_settings=settings,
        # For so long Envoy keeps a connection whose answer has broken off.
        envoy_settings={"client_stall_timeout": 1},
    ) as stack:
        async with Client(stack) as client:
            yield Node(stack, LocalLedger(stack, store_url), client, store_down, spools, Counter(), set())


@pytest.mark.timeout(300)
async def test_the_ledger_is_what_clients_received_whatever_dies(node: Node) -> None:
    await node.well()
    for happens in (
        whole_and_failed,
        worker_killed,
        worker_killed_in_motion,
        triton_killed,
        store_killed,
        stopped,
        killed_while_it_stores,
    ):
        await happens(node)
        await node.well()
    await node.ledger.settled()
    await eventually(lambda: node.received.keys() <= node.ledger.ids(), 20)
    await compare(node)


async def whole_and_failed(node: Node) -> None:
    """Answers that end by themselves, well or not."""
    steps: list[list[Any]] = [[{"repeat": [20, " w", 0.005]}, NO_END], [{"repeat": [7, " w", 0]}, {"error": "boom"}]]
    for body in [script(*some) for some in steps for _ in range(4)]:
        async with node.client.stream(body) as stream:
            events = await stream.rest()
            told = [event.data["response"]["usage"] for event in events if "response" in event.data][-1]
            assert node.received[node.note(stream)] == told["output_tokens"]
    assert (await node.client.ask(script({"error": "boom"}, stream=True))).status_code == 503


async def worker_killed(node: Node) -> None:
    """Another worker settles what it left, to the token, in seconds."""
    async with node.standing(9, streams=12):
        os.kill(node.stack.sidecar.worker_pids()[0], signal.SIGKILL)
        lost = await eventually(lambda: node.settled("worker_lost"), 20)
        assert 0 < lost < 12
    await node.ledger.settled()
    assert node.settled("worker_lost") + node.settled("client_gone") == 12


async def worker_killed_in_motion(node: Node) -> None:
    """The one case in which the two may differ."""
    async with AsyncExitStack() as leaving:
        body = script({"repeat": [MOVING, " w", 0.01]}, NO_END)
        streams = await asyncio.gather(*(leaving.enter_async_context(node.client.stream(body)) for _ in range(8)))
        reading = [asyncio.create_task(stream.rest()) for stream in streams]
        await eventually(lambda: all(stream.received.count(b"output_text.delta") > 40 for stream in streams), 20)
        os.kill(node.stack.sidecar.worker_pids()[1], signal.SIGKILL)
        ends = await asyncio.gather(*reading, return_exceptions=True)
    broken = [stream for stream, end in zip(streams, ends, strict=True) if isinstance(end, BaseException)]
    assert 0 < len(broken) < 8
    node.moved |= {node.note(stream) for stream in broken}
    assert {node.received[node.note(stream)] for stream in streams if stream not in broken} == {MOVING}


async def triton_killed(node: Node) -> None:
    """The clients are told how much of their answers counts."""
    assert node.stack.triton is not None
    async with node.standing(6, streams=6) as streams:
        node.stack.triton.kill()
        for stream in streams:
            failed, error = (await stream.rest())[-2:]
            assert (error.type, failed.data["response"]["usage"]["output_tokens"]) == ("error", 6)
    node.stack.start_triton()


async def store_killed(node: Node) -> None:
    """Who is served goes on, and a worker that dies meanwhile is settled when the store is back.

    Nobody new is served, unless the node spools.
    """
    async with AsyncExitStack() as leaving:
        await leaving.enter_async_context(node.standing(4, streams=8))
        with node.store_down():
            if node.spools:
                await whole_and_failed(node)
                await leaving.enter_async_context(node.standing(5, streams=8))
            else:
                refused = await node.client.ask(script("ok"))
                assert (refused.status_code, error_of(refused)["code"]) == (503, "node_unavailable")
            os.kill(node.stack.sidecar.worker_pids()[0], signal.SIGKILL)
            # The others leave.
            await leaving.aclose()
    await node.ledger.settled()


async def stopped(node: Node) -> None:
    """What cannot be settled at a stop is left to those who start next."""
    async with node.standing(3, streams=6):
        with node.store_down():
            await asyncio.to_thread(node.stack.sidecar.process.stop)
    assert list((node.stack.run_dir / "state").glob("*.slots"))
    assert node.ledger.rows("SELECT id FROM reservations WHERE settled_at IS NULL")
    await asyncio.to_thread(node.stack.start_sidecar)
    await node.ledger.settled()


async def killed_while_it_stores(node: Node) -> None:
    """On the other surface: what clients were told is stored, is there as they were told."""
    talks = Talks(node.stack.bureau_url, node.stack.project_key, seed=1)
    async with talks.going_on():
        await kill_at_random(node.stack, talks, kills=2)
    await node.well()
    await node.ledger.settled()
    check_records(node.ledger, talks)
    kinds = await check_stored(node.stack, node.ledger, talks)
    assert kinds["stored"] and kinds["streams stored"]
    # They have been compared.
    known = {id.removeprefix("resp_") for id in (*talks.told, *talks.broken)}
    billed = {
        row["id"]: row["output_tokens"] for row in node.ledger.rows("SELECT id, output_tokens FROM usage_records")
    }
    node.received.update({id: billed[id] for id in known})


async def compare(node: Node) -> None:
    records = {row["id"]: row for row in node.ledger.rows("SELECT * FROM usage_records")}
    billed = {id: records[id]["output_tokens"] for id in node.received}
    for id in node.moved:
        assert node.received[id] - 1 <= billed[id] <= MOVING
        node.received[id] = billed[id]
    assert billed == node.received
    assert sum(billed.values()) == node.received.total() > MOVING
    for row in records.values():
        price = (row["input_tokens"] * INPUT + row["output_tokens"] * OUTPUT) * 1000
        assert row["price"] == int(price), row
        if row["id"] not in billed and row["output_tokens"]:
            # An answer to a question whether it is well.
            assert row["outcome"] in ("completed", "incomplete")
    assert node.ledger.findings() == []
    assert not [id for id in records if id.endswith("-correction")]
    # What was settled by others has left no files behind: one for each worker that runs.
    await eventually(lambda: len(list((node.stack.run_dir / "state").glob("*.slots"))) == 2, 20)
