"""One suite over both transports, on the real Envoy: whole answers, failures, clients that leave or stall, drains."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from sidecar.cli.health import is_serving
from sidecar.extproc.transport import TRANSPORTS
from stack.local import SCRIPTED, LocalStack
from stack.triton import Triton
from tests.e2e.client import Client, error_of, eventually, script
from tests.e2e.test_failures import access_lines


@pytest.fixture(scope="module", params=sorted(TRANSPORTS))
def carried(
    request: pytest.FixtureRequest, triton: Triton, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStack]:
    """A stack for each transport, with short timers; the tests may stop its sidecar and start it again."""
    model = replace(SCRIPTED, context_length=10**8, settings={"first_token_timeout": 4.0, "token_timeout": 4.0})
    with LocalStack(
        tmp_path_factory.mktemp(request.param),
        models=[model],
        triton_address=f"127.0.0.1:{triton.grpc_port}",
        sidecar_settings={"transport": request.param, "keep_alive": 0.5, "drain": 3.0},
        envoy_settings={"client_stall_timeout": 30},
    ) as stack:
        yield stack


@pytest.fixture
async def client(carried: LocalStack) -> AsyncIterator[Client]:
    async with Client(carried) as client:
        yield client


def said(stack: LocalStack, start: int) -> list[dict[str, Any]]:
    """The sidecar's access log from the byte ``start`` on."""
    return access_lines(stack.sidecar.process.log, start)


def log_size(stack: LocalStack) -> int:
    return stack.sidecar.process.log.stat().st_size


async def test_answers_streamed_and_not(client: Client) -> None:
    body = script("one ", "two ", "three")
    events = await client.events(body)
    assert [event.data["delta"] for event in events if event.type == "response.output_text.delta"] == [
        "one ",
        "two ",
        "three",
    ]
    whole = (await client.ask(body)).json()
    assert whole["output"][0]["content"][0]["text"] == "one two three"


async def test_each_token_comes_when_it_is_made(client: Client) -> None:
    async with client.stream(script("first ", {"sleep": 1.0}, "second")) as stream:
        await stream.until(b"first ")
        assert b"second" not in stream.received
        await stream.until(b": keep-alive")
        assert (await stream.rest())[-1].type == "response.completed"


async def test_failures_before_and_after_the_head(client: Client) -> None:
    answer = await client.ask(script({"error": "boom"}, stream=True))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "infer_backend_unavailable")
    assert (await client.events(script("one", {"error": "boom"})))[-1].type == "error"
    assert (await client.ask(b"{")).status_code == 400
    silent = await client.ask(script({"sleep": 30}))
    assert silent.status_code == 503


@pytest.mark.parametrize("megabytes", [0.05, 1.5])
async def test_large_bodies_go_both_ways(client: Client, megabytes: float) -> None:
    # The prompt goes to Triton as token ids, four bytes for a character or less.
    filler = "x " * int(megabytes * 500_000)
    body = {"model": "scripted", "instructions": filler, "input": f"script:{json.dumps(['ok'])}"}
    answer = await client.ask(body)
    assert answer.status_code == 200, answer.text
    large = await client.ask(script({"repeat": [200, "word " * 2000, 0.0]}))
    assert len(large.content) > 2_000_000


async def test_many_streams_at_once(client: Client) -> None:
    body = script({"repeat": [50, "word ", 0.005]})
    answers = await asyncio.gather(*(client.events(body) for _ in range(60)))
    for events in answers:
        assert sum(event.type == "response.output_text.delta" for event in events) == 50
        assert events[-1].type == "response.completed"


async def test_a_client_that_leaves_is_noticed(carried: LocalStack, client: Client) -> None:
    start = log_size(carried)
    async with client.stream(script({"repeat": [1000, "word ", 0.02]})) as stream:
        await stream.until(b"output_text.delta")
    (line,) = await eventually(lambda: said(carried, start))
    assert line["outcome"] == "client_gone"


async def test_a_client_that_does_not_read_holds_up_itself_alone(carried: LocalStack, client: Client) -> None:
    body = json.dumps(script({"repeat": [20_000, "word " * 400, 0.0]}, stream=True)).encode()
    head = f"POST /v1/infer/responses HTTP/1.1\r\nhost: n\r\nauthorization: Bearer {carried.api_key}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    before, read_before, paused_before = memory(carried), read_from_triton(carried), pauses(carried)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", carried.port))
        slow.sendall(head.encode() + body)
        for _ in range(20):
            assert (await client.ask(script("ok"))).status_code == 200
        # 40 MB of text would come: what waits has a bound, and in the end nothing more is read from Triton.
        await eventually(lambda: pauses(carried) > paused_before)
        assert memory(carried) - before < 30 * 1024
        assert read_from_triton(carried) - read_before < 12_000_000
        start = log_size(carried)
    await eventually(lambda: said(carried, start), 20)


def read_from_triton(stack: LocalStack) -> int:
    """Bytes that Envoy has read from Triton so far."""
    name = "cluster.triton.upstream_cx_rx_bytes_total"
    return stack.envoy.stats(name)[name]


def pauses(stack: LocalStack) -> int:
    """How often Envoy has stopped to read an answer of Triton's."""
    name = "cluster.triton.upstream_flow_control_paused_reading_total"
    return stack.envoy.stats(name)[name]


def memory(stack: LocalStack) -> int:
    """Resident memory of the workers, in KiB."""
    statuses = [open(f"/proc/{pid}/status").read() for pid in stack.sidecar.worker_pids()]  # noqa: PTH123, SIM115
    return sum(int(line.split()[1]) for status in statuses for line in status.splitlines() if line.startswith("VmRSS"))


async def test_a_killed_worker_is_replaced_while_the_other_serves(carried: LocalStack, client: Client) -> None:
    first, second = carried.sidecar.worker_pids()
    os.kill(first, signal.SIGKILL)
    assert [(await client.ask(script("ok"))).status_code for _ in range(10)] == [200] * 10
    await eventually(lambda: len(set(carried.sidecar.worker_pids()) - {first}) == 2, 30)
    await eventually(lambda: all(map(is_serving, carried.sidecar.worker_sockets)), 30)
    assert second in carried.sidecar.worker_pids()


async def test_a_drain_loses_no_request(carried: LocalStack, client: Client) -> None:
    healthy = "cluster.sidecar.membership_healthy"
    await eventually(lambda: carried.envoy.stats(healthy)[healthy] == 2, 30)
    start = log_size(carried)
    long = [asyncio.create_task(client.events(script({"repeat": [1000, "word ", 0.05]}))) for _ in range(6)]
    short = [asyncio.create_task(client.events(script("some ", {"sleep": 1.0}, "end"))) for _ in range(6)]
    await asyncio.sleep(0.5)
    os.kill(carried.sidecar.process.pid, signal.SIGTERM)
    assert [events[-1].type for events in await asyncio.gather(*short)] == ["response.completed"] * 6
    ends = [(events[-1].type, events[-1].data["code"]) for events in await asyncio.gather(*long)]
    assert ends == [("error", "node_unavailable")] * 6
    await eventually(lambda: not carried.sidecar.process.running(), 20)
    assert len(said(carried, start)) == 12
    carried.start_sidecar()
    await eventually(lambda: carried.envoy.stats(healthy)[healthy] == 2, 30)
    async with asyncio.timeout(30):
        while (await ask_quietly(client)) != 200:
            await asyncio.sleep(0.1)


async def ask_quietly(client: Client) -> int | None:
    try:
        return (await client.ask(script("ok"))).status_code
    except httpx2.TransportError:
        return None


async def test_envoy_found_nothing_wrong(carried: LocalStack) -> None:
    stats = carried.envoy.stats("(cluster.sidecar|http.ingress.ext_proc)")
    faults = ["spurious_msgs_received", "rejected_header_mutations", "rx_messaging_error", "protocol_error"]
    found = {name: value for name, value in stats.items() if value and name.rsplit(".", 1)[-1] in faults}
    assert not found
