"""The client over real sockets: connections that are kept, refused, full, lost or left, and the calls on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from sidecar.grpc_h2 import Call, Client, Limits, Outgoing, Server, Status, unary
from sidecar.grpc_h2.frames import ErrorCode, goaway, settings
from sidecar.grpc_h2.receiver import Ignoring, Method
from sidecar.grpc_h2.unframer import PREFIX
from tests.core.grpc_h2.server_peer import PATH


class Awaited:
    """What a call came to."""

    def __init__(self) -> None:
        self.congested = False
        self.head: Mapping[str, str] | None = None
        self.body = b""
        self.trailers: Mapping[str, str] | None = None
        self.over = asyncio.Event()

    def begun(self, head: Mapping[str, str]) -> None:
        self.head = head

    def received(self, data: bytes) -> None:
        self.body += data

    def ended(self, trailers: Mapping[str, str] | None) -> None:
        self.trailers = trailers
        self.over.set()

    async def status(self) -> str | None:
        """The gRPC status; ``None`` where the call came to nothing."""
        await asyncio.wait_for(self.over.wait(), 10)
        return None if self.trailers is None else self.trailers["grpc-status"]


def message(data: bytes) -> bytes:
    return PREFIX.pack(0, len(data)) + data


class Holding(Ignoring):
    """A call that is held until the test ends it; ``gone`` notes those that are over."""

    def __init__(self, call: Call, held: list[Call], gone: list[int]) -> None:
        self._call, self._gone = call, gone
        held.append(call)
        call.start()

    def closed(self) -> None:
        self._gone.append(self._call.stream)


class Services:
    """Servers on one socket, one after the other."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.held: list[Call] = []
        self.gone: list[int] = []
        self._servers: list[Server] = []

    async def listen(self, limits: Limits | None = None) -> Server:
        methods: dict[str, Method] = {PATH: unary(self._echo), "/hold": self._hold}
        self._servers.append(await Server.listen(self.socket, methods, limits))
        return self._servers[-1]

    async def _echo(self, request: bytes) -> bytes:
        return request

    def _hold(self, call: Call) -> Holding:
        return Holding(call, self.held, self.gone)

    async def close(self) -> None:
        for server in self._servers:
            await server.close(0)


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Services]:
    services = Services(tmp_path / "s")
    yield services
    await services.close()


@pytest.fixture
async def client(services: Services) -> AsyncIterator[Client]:
    client = Client(services.socket)
    yield client
    await client.close()


def ask(client: Client, body: bytes = b"hello", path: str = PATH) -> tuple[Outgoing, Awaited]:
    answer = Awaited()
    return client.call(path, {}, message(body), answer), answer


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def test_many_calls_share_one_connection_that_is_kept(services: Services, client: Client) -> None:
    await services.listen()
    for _ in range(2):
        answers = [ask(client, b"%d" % number)[1] for number in range(50)]
        assert {await answer.status() for answer in answers} == {"0"}
        assert [answer.body for answer in answers] == [message(b"%d" % number) for number in range(50)]
    assert len(client._protocols) == 1


async def test_megabytes_go_and_come_back(services: Services, client: Client) -> None:
    await services.listen(Limits(max_message_bytes=10_000_000))
    body = bytes(range(256)) * 20_000
    _, answer = ask(client, body)
    _, small = ask(client)
    assert (await small.status(), await answer.status()) == ("0", "0")
    assert answer.body == message(body)


async def test_where_nobody_listens_a_call_comes_to_nothing_and_the_next_may_be_answered(
    services: Services, client: Client
) -> None:
    answers = [ask(client)[1] for _ in range(3)]
    assert [await answer.status() for answer in answers] == [None] * 3
    assert answers[0].head is None
    await services.listen()
    assert await ask(client)[1].status() == "0"


async def test_a_call_that_is_cancelled_while_it_waits_is_not_made(services: Services, client: Client) -> None:
    await services.listen()
    call, answer = ask(client, path="/hold")
    call.cancel()
    assert await ask(client)[1].status() == "0"
    assert (services.held, answer.over.is_set()) == ([], False)


async def test_a_full_connection_brings_a_second_one_and_calls_beyond_all_wait(
    services: Services, client: Client
) -> None:
    await services.listen(Limits(max_concurrent_streams=2))
    assert await ask(client)[1].status() == "0"
    calls = [ask(client, path="/hold") for _ in range(40)]
    # As many as sixteen connections take.
    await until(lambda: len(services.held) == 32)
    assert len(client._protocols) == 16
    services.held[0].finish(Status.OK)
    await until(lambda: len(services.held) == 33)
    calls[1][0].cancel()
    await until(lambda: len(services.held) == 34)
    for call, _ in calls:
        call.cancel()


async def test_a_server_that_leaves_ends_its_calls_and_the_next_are_made_elsewhere(
    services: Services, client: Client
) -> None:
    first = await services.listen()
    _, answer = ask(client, path="/hold")
    await until(lambda: services.held)
    services.socket.unlink()
    leaving = asyncio.create_task(first.close(10))
    await until(lambda: not client._protocols[0].connection.is_open)
    await services.listen()
    assert await ask(client)[1].status() == "0"
    services.held[0].finish(Status.OK)
    assert await answer.status() == "0"
    await leaving
    await until(lambda: len(client._protocols) == 1)


async def test_a_connection_that_breaks_breaks_its_calls(services: Services, client: Client) -> None:
    server = await services.listen()
    _, answer = ask(client, path="/hold")
    await until(lambda: answer.head)
    await server.close(0)
    assert await answer.status() is None


async def test_the_server_learns_at_once_of_a_call_that_is_cancelled(services: Services, client: Client) -> None:
    await services.listen()
    call, _ = ask(client, path="/hold")
    await until(lambda: services.held)
    call.cancel()
    await until(lambda: services.gone)


async def test_a_congested_answer_stops_its_own_call_only(services: Services, client: Client) -> None:
    await services.listen()
    call, answer = ask(client, path="/hold")
    await until(lambda: services.held)
    answer.congested = True
    (held,) = services.held
    for _ in range(100):
        held.send(bytes(10_000))
    await until(lambda: len(answer.body) >= Limits().stream_window)
    assert await ask(client)[1].status() == "0"
    assert held.congested
    answer.congested = False
    call.resume()
    held.finish(Status.OK)
    assert await answer.status() == "0"
    assert len(answer.body) == 100 * 10_005


@pytest.mark.parametrize("said", [b"no HTTP/2 at all", b"", settings({}) + goaway(0, ErrorCode.NO_ERROR, "")])
async def test_a_port_is_called_too_and_who_does_not_take_calls_there_costs_only_them(said: bytes) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(said)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    client = Client(("127.0.0.1", server.sockets[0].getsockname()[1]))
    answers = [ask(client)[1] for _ in range(5)]
    assert {await answer.status() for answer in answers} == {None}
    await client.close()
    server.close()


async def test_a_server_that_says_nothing_is_not_waited_for(
    services: Services, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.grpc_h2.client._CONNECT_SECONDS", 0.05)
    server = await asyncio.start_unix_server(lambda _reader, _writer: None, services.socket)
    assert await ask(client)[1].status() is None
    server.close()
