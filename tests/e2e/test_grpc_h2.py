"""The gRPC server on a real socket: gRPC's own client and the real Envoy as its peers, and a soak."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import uvloop
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

import sidecar.grpc_h2
from sidecar.cli.health import is_serving
from sidecar.grpc_h2 import Call, Health, Limits, Receiver, Server, Status, unary
from sidecar.grpc_h2.frames import PREFACE, Kind, Setting, frame, settings, window_update
from stack.envoy import validate
from stack.net import free_port
from stack.paths import ROOT, socket_directory
from stack.process import Process
from tests.e2e.raw_http import exchange, request

ECHO, HOLD, FAIL = "/test.Service/Echo", "/test.Service/Hold", "/test.Service/Fail"
ANSWER = "/test.Service/Answer"
OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]


class Echo:
    """Sends each message back; ``hold`` says nothing and never ends."""

    def __init__(self, call: Call, running: set[Echo], *, hold: bool = False) -> None:
        self._call, self._running, self._hold = call, running, hold
        running.add(self)

    def received(self, message: bytes) -> None:
        if message == b"refuse":
            self._call.finish(Status.PERMISSION_DENIED, "verweigert: ü")
        elif not self._hold:
            self._call.send(message, 1)

    def half_closed(self) -> None:
        if not self._hold:
            self._call.finish()

    def handed(self, mark: int) -> None:
        """Nothing is counted."""

    def drained(self) -> None:
        """It goes on by itself."""

    def closed(self) -> None:
        self._running.remove(self)


def fail(call: Call) -> Receiver:
    raise RuntimeError("a fault of the application")


class Answers:
    """A method that a coroutine answers."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.begun = 0
        self.given_up = 0

    async def answer(self, request: bytes) -> bytes:
        self.begun += 1
        if request == b"fail":
            raise RuntimeError("a fault of the application")
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return b"answer to " + request


class Service:
    """A server, a channel to it, and the calls that its methods have under way."""

    def __init__(
        self, server: Server, health: Health, channel: grpc.aio.Channel, running: set[Echo], answers: Answers
    ) -> None:
        self.server, self.health, self.channel = server, health, channel
        self.running, self.answers = running, answers

    def stream(self, method: str = ECHO) -> Any:
        """A call of one of the methods."""
        return self.channel.stream_stream(method)()

    async def echo(self, *messages: bytes) -> list[bytes]:
        """What comes back for ``messages``."""
        return [message async for message in self.channel.stream_stream(ECHO)(iter(messages))]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    socket = socket_directory(tmp_path) / "test.sock"
    running: set[Echo] = set()
    answers = Answers()
    health = Health()
    methods = {
        ECHO: lambda call: Echo(call, running),
        HOLD: lambda call: Echo(call, running, hold=True),
        FAIL: fail,
        ANSWER: unary(answers.answer),
        **health.methods,
    }
    server = await Server.listen(socket, methods, Limits(max_message_bytes=8 * 1024 * 1024))
    async with grpc.aio.insecure_channel(f"unix:{socket}", options=OPTIONS) as channel:
        yield Service(server, health, channel, running, answers)
    await server.close(0)


async def test_grpc_s_client_gets_what_it_sends(service: Service) -> None:
    assert await service.echo(b"one", b"", b"three") == [b"one", b"", b"three"]
    assert await service.echo() == []
    assert service.running == set()


async def test_messages_far_larger_than_any_window(service: Service) -> None:
    large = [random.Random(1).randbytes(7_000_000), b"small", bytes(3_000_000)]
    assert await service.echo(*large) == large


async def test_statuses_and_words_reach_the_client(service: Service) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await service.echo(b"refuse")
    assert (refused.value.code(), refused.value.details()) == (grpc.StatusCode.PERMISSION_DENIED, "verweigert: ü")
    for method, code in ((FAIL, grpc.StatusCode.INTERNAL), ("/test.Service/None", grpc.StatusCode.UNIMPLEMENTED)):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await service.channel.unary_unary(method)(b"")
        assert failed.value.code() is code
    with pytest.raises(grpc.aio.AioRpcError) as large:
        await service.echo(bytes(8 * 1024 * 1024 + 1))
    assert large.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_call_that_is_cancelled_ends(service: Service) -> None:
    calls = [service.stream(HOLD) for _ in range(10)]
    for call in calls:
        await call.write(b"x")
    assert len(service.running) == 10
    for call in calls:
        call.cancel()
    await until(lambda: not service.running)


async def test_a_client_that_does_not_read_is_not_answered_into_memory(service: Service) -> None:
    """It may send no more than a window while its answers wait, and gets all of them when it reads."""
    call = service.stream()
    written = 0

    async def write() -> None:
        nonlocal written
        while written < 300:
            await call.write(bytes(100_000))
            written += 1
        await call.done_writing()

    writing = asyncio.create_task(write())
    await asyncio.sleep(1)
    assert written < 200
    received = [message async for message in call]
    await writing
    assert len(received) == 300


async def test_health_is_told_as_grpc_asks_for_it(service: Service, tmp_path: Path) -> None:
    stub = health_pb2_grpc.HealthStub(service.channel)
    serving, not_serving = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
    assert (await stub.Check(health_pb2.HealthCheckRequest())).status == serving
    service.health.serving = False
    assert (await stub.Check(health_pb2.HealthCheckRequest(service=""))).status == not_serving
    with pytest.raises(grpc.aio.AioRpcError) as unknown:
        await stub.Check(health_pb2.HealthCheckRequest(service="other"))
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.aio.AioRpcError) as watched:
        await anext(aiter(stub.Watch(health_pb2.HealthCheckRequest())))
    assert watched.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("messages", [[], [b"", b""]], ids=["no request", "two requests"])
async def test_a_method_of_one_message_gets_one(service: Service, messages: list[bytes]) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        _ = [one async for one in service.channel.stream_stream("/grpc.health.v1.Health/Check")(iter(messages))]
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_coroutine_answers_while_others_wait(service: Service) -> None:
    answers = [asyncio.ensure_future(service.channel.unary_unary(ANSWER)(b"%d" % number)) for number in range(3)]
    await until(lambda: service.answers.begun == 3)
    assert await service.echo(b"meanwhile") == [b"meanwhile"]
    service.answers.release.set()
    assert await asyncio.gather(*answers) == [b"answer to 0", b"answer to 1", b"answer to 2"]
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await service.channel.unary_unary(ANSWER)(b"fail")
    assert failed.value.code() is grpc.StatusCode.INTERNAL


async def test_a_coroutine_whose_client_has_gone_is_cancelled(service: Service) -> None:
    call = service.channel.unary_unary(ANSWER)(b"x")
    await until(lambda: service.answers.begun == 1)
    call.cancel()
    await until(lambda: service.answers.given_up == 1)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_server_that_closes_lets_calls_end_and_cuts_off_the_rest(service: Service) -> None:
    ending, endless = service.stream(), service.stream(HOLD)
    await ending.write(b"x")
    await endless.write(b"x")
    await ending.read()
    closing = asyncio.create_task(service.server.close(1))
    await asyncio.sleep(0.1)
    await ending.write(b"last")
    assert await ending.read() == b"last"
    await ending.done_writing()
    assert await ending.code() is grpc.StatusCode.OK
    await closing
    assert await endless.code() is grpc.StatusCode.UNAVAILABLE
    assert service.running == set()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_connection_that_is_not_read_is_not_read_from(run: Callable[[Any], None], tmp_path: Path) -> None:
    """Whatever its windows allow: what it sends waits in its own socket, and all is answered once it reads."""
    socket = socket_directory(tmp_path) / "test.sock"
    window = {Setting.INITIAL_WINDOW_SIZE: 2**31 - 1}
    pings = frame(Kind.PING, 0, 0, b"12345678") * 1000
    said = PREFACE + settings(window) + window_update(0, 2**31 - 1 - 65_535) + pings

    async def talk() -> None:
        server = await Server.listen(socket, {}, Limits(max_idle_frames=10**9))
        reader, writer = await asyncio.open_unix_connection(str(socket), limit=2**16)
        writer.write(said)
        for _ in range(500):
            writer.write(pings)
        waiting = asyncio.create_task(writer.drain())
        await asyncio.sleep(1)
        # 8.5 MB of pings; some two megabytes fit into the buffers between.
        unsent = writer.transport.get_write_buffer_size()
        assert unsent > 4_000_000
        received = 0
        while received < 501_000 * 17:
            received += len(await reader.read(2**20))
        await waiting
        writer.close()
        await server.close(1)

    run(talk())


SOAK_CALLS = 4000


async def test_thousands_of_calls_leave_nothing_behind(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    # What is logged of methods that fail would be kept, with all that it refers to.
    caplog.set_level(logging.CRITICAL, "sidecar.grpc_h2")
    await soak(service, 500, seed=1)
    tasks = len(asyncio.all_tasks())
    tracemalloc.start()
    try:
        await soak(service, 500, seed=2)
        before = memory_of_the_server()
        await soak(service, SOAK_CALLS, seed=3)
        assert memory_of_the_server() - before < 20_000
    finally:
        tracemalloc.stop()
    assert (service.running, len(asyncio.all_tasks())) == (set(), tasks)


def memory_of_the_server() -> int:
    """Bytes of all objects that the server's own lines have made and that are still there."""
    gc.collect()
    of_the_server = tracemalloc.Filter(True, str(Path(sidecar.grpc_h2.__file__).parent / "*"))
    snapshot = tracemalloc.take_snapshot().filter_traces([of_the_server])
    return sum(statistic.size for statistic in snapshot.statistics("filename"))


async def soak(service: Service, calls: int, seed: int) -> None:
    """Calls of every kind, 50 at a time, and wait until the server has seen the end of each."""
    choose = random.Random(seed)
    kinds = iter(
        choose.choices(["echo", "large", "cancel", "refuse", "fail", "leave open"], [40, 5, 25, 10, 10, 10], k=calls)
    )

    async def one_after_another() -> None:
        for kind in kinds:
            await run(service, kind)

    await asyncio.gather(*(one_after_another() for _ in range(50)))
    await until(lambda: not service.running)


async def run(service: Service, kind: str) -> None:
    match kind:
        case "echo":
            assert await service.echo(b"a", b"b") == [b"a", b"b"]
        case "large":
            assert len(await service.echo(bytes(200_000))) == 1
        case "cancel" | "leave open":
            call = service.stream(HOLD if kind == "cancel" else ECHO)
            await call.write(b"x")
            call.cancel()
        case _:
            method, message = (FAIL, b"x") if kind == "fail" else (ECHO, b"refuse")
            with pytest.raises(grpc.aio.AioRpcError):
                await service.channel.unary_unary(method)(message)


@pytest.fixture
def example(tmp_path: Path) -> Iterator[tuple[int, Process]]:
    """The example behind a real Envoy; the port of Envoy and the example's process."""
    sockets, port = socket_directory(tmp_path), free_port()
    socket = sockets / "ext_proc.sock"
    server = Process(
        "The example",
        [sys.executable, str(ROOT / "examples" / "add_a_header.py"), str(socket)],
        tmp_path / "example.log",
        {"PYTHONPATH": str(ROOT)},
    )
    config = tmp_path / "envoy.yaml"
    config.write_text(yaml.safe_dump(envoy_config(port, socket)))
    validate(config)
    envoy = Process(
        "Envoy",
        [
            str(Path(sys.executable).with_name("envoy")),
            "-c",
            str(config),
            "--disable-hot-restart",
            "--concurrency",
            "1",
        ],
        tmp_path / "envoy.log",
    )
    try:
        server.wait_until(lambda: socket.exists() and is_serving(socket), 30)
        envoy.wait_until(lambda: "starting main dispatch loop" in envoy.log.read_text(), 30)
        yield port, server
    finally:
        envoy.stop()
        server.stop()


def envoy_config(port: int, socket: Path) -> dict[str, Any]:
    """An Envoy that answers by itself, and asks the example about each response."""
    package = "type.googleapis.com/envoy.extensions"
    ext_proc = {
        "@type": f"{package}.filters.http.ext_proc.v3.ExternalProcessor",
        "grpc_service": {
            "envoy_grpc": {"cluster_name": "ext_proc"},
            "initial_metadata": [{"key": "x-greeting", "value": "from Envoy"}],
        },
        "processing_mode": {"request_header_mode": "SEND", "response_header_mode": "SEND"},
    }
    manager = {
        "@type": f"{package}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "ingress",
        "http_filters": [
            {"name": "ext_proc", "typed_config": ext_proc},
            {"name": "router", "typed_config": {"@type": f"{package}.filters.http.router.v3.Router"}},
        ],
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": "/"},
                            "direct_response": {"status": 200, "body": {"inline_string": "well"}},
                        }
                    ],
                }
            ]
        },
    }
    cluster = {
        "name": "ext_proc",
        "type": "STATIC",
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{package}.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
        "load_assignment": {
            "cluster_name": "ext_proc",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"pipe": {"path": str(socket)}}}}]}],
        },
    }
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    listener = {"name": "ingress", "address": address, "filter_chains": [{"filters": filters}]}
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def test_the_example_adds_a_header_to_what_envoy_answers(example: tuple[int, Process]) -> None:
    port, server = example
    for _ in range(3):
        reply = exchange(port, [request("GET", "/", headers=["Connection: close"])])
        assert (reply.status, reply.body, reply.headers["x-greeting"]) == (200, b"well", "from Envoy")
    server.wait_until(lambda: server.log.read_text().count("over after 2 messages") == 3, 10)
    assert "answer 2 of /envoy.service.ext_proc.v3.ExternalProcessor/Process has been written" in server.log.read_text()
