"""Parts are replaced or die under 64 streams: whoever need not be lost is not, and no answer ends by half unnoticed.

The stack has two sidecars, of one worker each, and two Tritons behind one Envoy, as docs/upgrades.md has it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from stack.envoy import Envoy, HotRestart
from stack.local import SCRIPTED, LocalStack
from stack.paths import TOKENIZER, TRITON_VENV, socket_directory
from stack.sidecar import Sidecar, worker_sockets
from stack.triton import Triton
from stack.triton import start as start_triton
from tests.core.sse import whole_stream
from tests.e2e.client import Client, eventually, script

# Six parts start, and a dozen times one starts anew.
pytestmark = pytest.mark.timeout(300)

STREAMS = 64
LONG = script({"repeat": [50, "w ", 0.1]}, {"no_end_id": True}, stream=True)


@dataclass
class Node:
    """The parts that a stack has one of come second here too; ``epoch`` counts the Envoys."""

    stack: LocalStack
    second: Sidecar
    second_triton: Triton
    restart: HotRestart
    sidecars: list[Sidecar] = field(default_factory=list)

    def replace_envoy(self, *tritons: Triton) -> Envoy:
        """Start the next Envoy, which knows these Tritons; the one before."""
        before = self.stack.envoy
        self.restart = replace(self.restart, epoch=self.restart.epoch + 1)
        self.stack.envoy = self._envoy(*tritons)
        return before

    def first_envoy(self) -> None:
        """The one that can be replaced."""
        self.stack.envoy.process.stop()
        assert self.stack.triton is not None
        self.stack.envoy = self._envoy(self.stack.triton, self.second_triton)

    def _envoy(self, *tritons: Triton) -> Envoy:
        settings = replace(
            self.stack.envoy.settings,
            worker_sockets=[*self.stack.sidecar.worker_sockets, *self.second.worker_sockets],
            triton=[("127.0.0.1", triton.grpc_port) for triton in tritons],
        )
        envoy = Envoy(settings, self.stack.run_dir, restart=self.restart)
        envoy.wait_ready()
        return envoy

    async def both_serve(self) -> None:
        """Wait until Envoy knows that both sidecars do."""
        healthy = "cluster.sidecar.membership_healthy"
        await eventually(lambda: self.stack.envoy.stats(healthy).get(healthy) == 2, 60)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    run_dir = tmp_path_factory.mktemp("upgrades")
    with LocalStack(run_dir, models=[SCRIPTED], workers=1, sidecar_settings={"drain": 20.0}) as stack:
        second = _second_sidecar(stack, run_dir / "second")
        triton = start_triton(
            TRITON_VENV,
            run_dir / "second" / "triton",
            [SCRIPTED.triton_model],
            log=run_dir / "second" / "triton.log",
            tokenizer=TOKENIZER,
            event_log=stack.scripted_events,
        )
        node = Node(stack, second, triton, HotRestart(base_id=stack.port))
        try:
            second.wait_ready()
            node.first_envoy()
            yield node
        finally:
            node.second.process.stop()
            node.second_triton.stop()
            stack.envoy.process.stop()
            node.restart.forget()


def _second_sidecar(stack: LocalStack, run_dir: Path) -> Sidecar:
    """A sidecar with the same configuration and store, whose sockets are its own; Envoy's are where they were."""
    run_dir.mkdir()
    sockets = socket_directory(run_dir)
    configuration = yaml.safe_load(stack.sidecar.config.read_text())
    configuration["triton"]["upstream"] = f"unix:{stack.envoy.settings.egress_socket}"
    (run_dir / "sidecar.yaml").write_text(yaml.safe_dump({**configuration, "sockets": str(sockets)}))
    return Sidecar(run_dir / "sidecar.yaml", worker_sockets(sockets, 1), run_dir)


@pytest.fixture
async def client(node: Node) -> AsyncIterator[Client]:
    async with Client(node.stack) as client:
        yield client


@asynccontextmanager
async def streams(node: Node, client: Client) -> AsyncIterator[list[asyncio.Task[httpx2.Response]]]:
    """Long streams that have all begun."""
    begun = _starts(node.stack)
    tasks = [asyncio.create_task(client.ask(LONG)) for _ in range(STREAMS)]
    await eventually(lambda: _starts(node.stack) >= begun + STREAMS, 60)
    yield tasks
    await asyncio.gather(*tasks, return_exceptions=True)


def _starts(stack: LocalStack) -> int:
    """How many requests the models have been given."""
    lines = stack.scripted_events.read_text().splitlines() if stack.scripted_events.exists() else []
    # One may be half written.
    return sum('"event": "start"' in line and line.endswith("}") for line in lines)


@asynccontextmanager
async def short_requests(client: Client) -> AsyncIterator[list[Any]]:
    """Requests one after another, some at a time, as long as the context lasts; all that did not end well."""
    failed: list[Any] = []
    over = asyncio.Event()

    async def one_after_another() -> None:
        while not over.is_set():
            try:
                answer = await client.ask(script("one ", "two", stream=True))
                if answer.status_code != 200 or whole_stream(answer.content)[-1].type != "response.completed":
                    failed.append(answer.text)
            except httpx2.TransportError as error:
                failed.append(error)
            await asyncio.sleep(0.02)

    tasks = [asyncio.create_task(one_after_another()) for _ in range(4)]
    try:
        yield failed
    finally:
        over.set()
        await asyncio.gather(*tasks)


def words(answer: httpx2.Response) -> int:
    """How many words the answer has; it must be whole."""
    assert answer.status_code == 200, answer.text
    final = whole_stream(answer.content)[-1]
    assert final.type == "response.completed", final
    text: str = final.data["response"]["output"][0]["content"][0]["text"]
    return text.count("w ")


async def test_a_worker_that_crashes_takes_its_own_streams_with_it_and_no_others(node: Node, client: Client) -> None:
    await node.both_serve()
    async with streams(node, client) as running:
        os.kill(node.stack.sidecar.worker_pids()[0], signal.SIGKILL)
        ended = await asyncio.gather(*running, return_exceptions=True)
    whole = [one for one in ended if isinstance(one, httpx2.Response) and one.status_code == 200]
    assert {words(answer) for answer in whole} == {50}
    assert STREAMS / 4 < len(whole) < STREAMS * 3 / 4
    for one in ended:
        # The connection breaks off, or, before its head was sent, the request is told to come again.
        assert one in whole or isinstance(one, httpx2.TransportError) or _retryable(one)
    await node.both_serve()


def _retryable(answer: Any) -> bool:
    assert isinstance(answer, httpx2.Response), answer
    return answer.status_code == 503 and json.loads(answer.content)["error"]["code"] == "node_unavailable"


async def test_workers_that_are_replaced_by_a_reload_lose_no_stream_and_no_request(node: Node, client: Client) -> None:
    await node.both_serve()
    before = node.stack.sidecar.worker_pids()
    async with short_requests(client) as failed, streams(node, client) as running:
        os.kill(node.stack.sidecar.process.pid, signal.SIGHUP)
        await eventually(lambda: node.stack.sidecar.worker_pids() not in ([], before), 60)
        answers = await asyncio.gather(*running)
    assert {words(answer) for answer in answers} == {50}
    assert failed == []
    await node.both_serve()


async def test_sidecars_that_stop_in_turn_lose_no_stream_and_no_request(node: Node, client: Client) -> None:
    await node.both_serve()
    async with short_requests(client) as failed:
        async with streams(node, client) as running:
            await asyncio.to_thread(node.second.process.stop, 40)
            node.second = Sidecar(node.second.config, node.second.worker_sockets, node.second.config.parent)
            await asyncio.to_thread(node.second.wait_ready)
            answers = await asyncio.gather(*running)
        await node.both_serve()
        await asyncio.to_thread(node.stack.sidecar.process.stop, 40)
        await asyncio.to_thread(node.stack.start_sidecar)
        await node.both_serve()
    assert {words(answer) for answer in answers} == {50}
    assert failed == []


async def test_envoy_and_triton_are_replaced_and_no_request_fails(node: Node, client: Client) -> None:
    """Envoy's successor knows one Triton only; when the streams of the other have ended, that is stopped."""
    await node.both_serve()
    assert node.stack.triton is not None
    async with short_requests(client) as failed:
        async with streams(node, client) as running:
            before = await asyncio.to_thread(node.replace_envoy, node.second_triton)
            answers = await asyncio.gather(*running)
        await asyncio.to_thread(node.stack.triton.stop)
        await eventually(lambda: not before.process.running(), 60)
    assert {words(answer) for answer in answers} == {50}
    assert failed == []
    # A sidecar that starts now finds the Triton that lives, through Envoy.
    await asyncio.to_thread(node.second.process.stop, 40)
    node.second = Sidecar(node.second.config, node.second.worker_sockets, node.second.config.parent)
    await asyncio.to_thread(node.second.wait_ready)
    await node.both_serve()
    answers = await asyncio.gather(*(client.ask(script("ok", {"sleep": 0.2}, "ay")) for _ in range(32)))
    assert {answer.status_code for answer in answers} == {200}
