"""Connections made to starve Envoy or a worker, and beside each an honest client whose requests all succeed."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
from collections import Counter
from collections.abc import Iterator

import h2.events
import pytest

from stack.local import SCRIPTED, LocalStack
from tests.e2e.client import Client, Stream, eventually, script
from tests.e2e.raw_http import request
from tests.hostile.connections import PATH, Http2, connections, honest_client

MOST_CONNECTIONS = 100
HANG = json.dumps(script({"hang": True})).encode()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack with low limits, whose Envoy has no file descriptor beyond its budget. Tests leave all parts running."""
    with LocalStack(
        tmp_path_factory.mktemp("hostile"),
        models=[SCRIPTED],
        sidecar_settings={"watchdog": 3.0, "drain": 1.0},
        envoy_settings={"max_connections": MOST_CONNECTIONS, "request_timeout": 3},
    ) as stack:
        descriptors = stack.envoy.settings.descriptors
        resource.prlimit(stack.envoy.process.pid, resource.RLIMIT_NOFILE, (descriptors, descriptors))
        yield stack
        stack.check_alive()


def stat(stack: LocalStack, name: str) -> int:
    """A counter or gauge of Envoy's."""
    return stack.envoy.stats(name)[name]


async def test_idle_connections_beyond_the_limit_are_closed_and_silent_ones_soon(stack: LocalStack) -> None:
    async with honest_client(stack), connections(stack, 3 * MOST_CONNECTIONS) as idle:
        ends = [asyncio.create_task(connection.rest()) for connection in idle]
        await eventually(lambda: sum(end.done() for end in ends) >= 2 * MOST_CONNECTIONS)
        # Those within the limit say nothing, so that they do not keep their places for long.
        assert set(await asyncio.gather(*ends)) == {b""}
    async with Client(stack) as late:
        assert (await late.ask(script("ok"))).status_code == 200


async def test_headers_that_trickle_are_cut(stack: LocalStack) -> None:
    async with honest_client(stack), connections(stack, MOST_CONNECTIONS // 2) as slow:
        start = f"POST {PATH} HTTP/1.1\r\nHost: node\r\n".encode()
        answers = await asyncio.gather(*(one.trickle(start, b"X-A: b\r\n", 0.5) for one in slow))
    assert Counter(answer.split(b"\r\n")[0] for answer in answers) == {b"HTTP/1.1 408 Request Timeout": len(slow)}


@pytest.mark.parametrize("where", [("POST", PATH), ("GET", "/v1/infer/openapi.json")], ids=["key", "no key"])
async def test_bodies_that_trickle_are_cut_however_lively(stack: LocalStack, where: tuple[str, str]) -> None:
    method, path = where
    key = stack.api_key if method == "POST" else None
    head = request(method, path, key=key, headers=["Content-Type: application/json", "Content-Length: 100000"])
    async with honest_client(stack), connections(stack, MOST_CONNECTIONS // 2) as slow:
        answers = await asyncio.gather(*(one.trickle(head, b" ", 0.2) for one in slow))
    for answer in answers:
        assert answer.startswith(b"HTTP/1.1 408 ")
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert (error["code"], error["message"]) == (
            "invalid_request",
            "The whole request did not come within 3 seconds.",
        )


async def test_an_answer_takes_longer_than_a_request_may(stack: LocalStack) -> None:
    async with Client(stack) as client:
        for body in (script({"sleep": 4}, "ok"), script("some", {"sleep": 4}, " more", stream=True)):
            assert b"completed" in (await client.ask(body)).content


async def test_a_connection_that_takes_its_requests_back_is_closed(stack: LocalStack) -> None:
    async def reset_rapidly(http2: Http2) -> int:
        """How many requests were made until it was closed."""
        for made in range(10_000):
            http2.reset(http2.request(end=False))
            if made % 20 == 0 and not await http2.flush():
                return made
        return 10_000

    async with honest_client(stack), connections(stack, 10) as hasty:
        made = await asyncio.gather(*(reset_rapidly(Http2(one, stack.api_key)) for one in hasty))
    assert max(made) < 10_000


HUGE_HEADERS = {"one": ["X-Filler: " + "x" * 100_000], "many": [f"X-{number}: x" for number in range(1000)]}


@pytest.mark.parametrize("headers", HUGE_HEADERS.values(), ids=HUGE_HEADERS)
async def test_huge_headers_are_refused(stack: LocalStack, headers: list[str]) -> None:
    sent = request("POST", PATH, headers=headers)
    async with honest_client(stack), connections(stack, 20) as large:
        answers = await asyncio.gather(*(one.trickle(sent, b"", 1) for one in large))
    assert {answer.split(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 431 Request Header Fields Too Large"}


async def test_huge_headers_of_http_2_are_refused(stack: LocalStack) -> None:
    async def end_of(http2: Http2) -> bytes:
        http2.request(headers=[(f"x-{number}", "x" * 10_000) for number in range(10)])
        await http2.flush()
        while events := await http2.events():
            for event in events:
                match event:
                    case h2.events.ResponseReceived():
                        return dict(event.headers)[b":status"]
                    case h2.events.StreamReset() | h2.events.ConnectionTerminated():
                        return b"ended"
        return b"ended"

    async with honest_client(stack), connections(stack, 3) as large:
        ends = await asyncio.gather(*(end_of(Http2(one, stack.api_key)) for one in large))
    assert set(ends) == {b"ended"}


async def test_a_connection_has_a_hundred_streams_and_further_ones_are_refused(stack: LocalStack) -> None:
    async with honest_client(stack), connections(stack, 1) as (one,):
        http2 = Http2(one, stack.api_key)
        for _ in range(130):
            http2.request(end=False)
        await http2.flush()
        refused: list[h2.events.Event] = []
        while len(refused) < 30:
            events = await http2.events()
            assert events, "the connection was closed"
            refused += [event for event in events if isinstance(event, h2.events.StreamReset)]


async def test_requests_that_share_connections_have_their_limit_too(stack: LocalStack) -> None:
    async with honest_client(stack), connections(stack, MOST_CONNECTIONS // 2) as idle, connections(stack, 2) as shared:
        for one in idle:
            await one.send(b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n")
        tunnels = "cluster.egress_tunnel.upstream_cx_active"
        for one in shared:
            http2 = Http2(one, stack.api_key)
            for _ in range(MOST_CONNECTIONS // 2 - 5):
                http2.request(HANG)
            await http2.flush()
        await eventually(lambda: stat(stack, tunnels) >= MOST_CONNECTIONS - 10)


async def test_more_requests_than_tunnels_wait_for_their_turn(stack: LocalStack) -> None:
    async def answers(http2: Http2, count: int) -> list[bytes]:
        for _ in range(count):
            http2.request(json.dumps(script({"sleep": 0.5}, "ok")).encode())
        await http2.flush()
        statuses: list[bytes] = []
        while len(statuses) < count and (events := await http2.events()):
            heads = [event.headers for event in events if isinstance(event, h2.events.ResponseReceived)]
            statuses += [dict(head)[b":status"] for head in heads]
        return statuses

    async with connections(stack, 2) as shared:
        asked = (answers(Http2(one, stack.api_key), MOST_CONNECTIONS * 3 // 5) for one in shared)
        assert {status for statuses in await asyncio.gather(*asked) for status in statuses} == {b"200"}


async def test_a_worker_that_is_busy_for_a_second_stays_in_service(stack: LocalStack) -> None:
    failures = stat(stack, "cluster.sidecar.health_check.failure")
    worker, _ = stack.sidecar.worker_pids()
    async with honest_client(stack):
        os.kill(worker, signal.SIGSTOP)
        try:
            await eventually(lambda: stat(stack, "cluster.sidecar.health_check.failure") > failures)
            assert stat(stack, "cluster.sidecar.membership_healthy") == 2
        finally:
            os.kill(worker, signal.SIGCONT)
    assert stat(stack, "cluster.sidecar.membership_healthy") == 2


async def test_a_worker_that_is_stuck_is_replaced_and_its_clients_are_told(stack: LocalStack) -> None:
    stuck, other = stack.sidecar.worker_pids()

    async def end_of(stream: Stream) -> str:
        try:
            events = await stream.rest()
        except Exception as error:
            return type(error).__name__
        return events[-1].type

    long = script("some ", {"sleep": 15}, "more")
    async with Client(stack) as client:
        async with asyncio.TaskGroup() as group:

            async def stream_one() -> str:
                async with client.stream(long) as stream:
                    await stream.until(b"output_text.delta")
                    started.append(stream)
                    return await end_of(stream)

            started: list[Stream] = []
            streams = [group.create_task(stream_one()) for _ in range(8)]
            await eventually(lambda: len(started) == len(streams))
            os.kill(stuck, signal.SIGSTOP)
            # What begins at the stuck worker is tried again at the other.
            early = [group.create_task(client.ask(script("ok"))) for _ in range(8)]
        # The clients of the stuck worker see their answers break off; those of the other see them whole.
        ends = Counter(stream.result() for stream in streams)
        assert set(ends) == {"RemoteProtocolError", "response.completed"}
        assert {answer.result().status_code for answer in early} == {200}
    (new, same) = await eventually(lambda: len(pids := stack.sidecar.worker_pids()) == 2 and pids, 30)
    assert (new != stuck, same) == (True, other)
    await eventually(lambda: stat(stack, "cluster.sidecar.membership_healthy") == 2, 30)
    assert "worker 0: its loop has been stuck for 3 s" in stack.sidecar.process.log.read_text()


async def test_a_stop_does_not_wait_for_a_stuck_worker(stack: LocalStack) -> None:
    os.kill(stack.sidecar.worker_pids()[0], signal.SIGSTOP)
    os.kill(stack.sidecar.process.pid, signal.SIGTERM)
    # The drain, and what comes on top of it at most.
    await eventually(lambda: not stack.sidecar.process.running(), 11)
    stack.start_sidecar()
    stack.wait_until_answering()
