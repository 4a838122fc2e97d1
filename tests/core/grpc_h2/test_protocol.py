"""The asyncio edge on a transport in memory: when it writes and reads, and when it closes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sidecar.grpc_h2 import Call, Limits
from sidecar.grpc_h2.frames import Kind, Setting, settings, window_update
from sidecar.grpc_h2.protocol import ServerProtocol
from tests.core.grpc_h2.peer import ECHO, GREETING, RECORD, Seen, call, data, frames_in, headers, kinds, message


class Socket:
    """A transport that counts."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.reading = True
        self.closed = self.aborted = False
        self.high_water = 0

    def set_write_buffer_limits(self, high: int) -> None:
        self.high_water = high

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.writes.append(data)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


class Edge:
    """A protocol on such a transport, greeted."""

    def __init__(self) -> None:
        self.socket = Socket()
        self.events: list[tuple[Any, ...]] = []
        self.calls: dict[int, Call] = {}
        self.open: set[ServerProtocol] = set()
        methods = {ECHO: lambda call: self._see(call, echo=True), RECORD: lambda call: self._see(call, echo=False)}
        self.protocol = ServerProtocol(methods, Limits(), self.open)
        transport: Any = self.socket
        self.protocol.connection_made(transport)
        self.protocol.data_received(GREETING)
        self.socket.writes.clear()

    def _see(self, call: Call, *, echo: bool) -> Seen:
        self.calls[call.stream] = call
        return Seen(call, self.events, echo=echo)


@pytest.fixture
async def edge() -> Edge:
    return Edge()


async def test_what_a_read_brings_is_answered_in_one_write(edge: Edge) -> None:
    edge.protocol.data_received(b"".join(call(2 * number + 1, b"x", b"y") for number in range(20)))
    (written,) = edge.socket.writes
    assert len(list(frames_in(written))) == 20 * 4
    await asyncio.sleep(0)
    assert len(edge.socket.writes) == 1


async def test_a_read_that_brings_nothing_to_say_writes_nothing(edge: Edge) -> None:
    edge.protocol.data_received(headers(1, RECORD))
    assert edge.socket.writes == []


async def test_what_is_sent_from_elsewhere_is_written_in_the_next_turn_at_once(edge: Edge) -> None:
    edge.protocol.data_received(headers(1, RECORD) + headers(3, RECORD))
    for number in range(10):
        edge.calls[1].send(b"a", number + 1)
        edge.calls[3].send(b"b")
    assert edge.socket.writes == []
    await asyncio.sleep(0)
    (written,) = edge.socket.writes
    assert kinds(list(frames_in(written))).count(Kind.DATA) == 20
    assert [words for words in edge.events if words[1] == "handed"] == [(1, "handed", n + 1) for n in range(10)]


async def test_a_full_socket_is_not_written_to_and_nothing_is_read(edge: Edge) -> None:
    edge.protocol.data_received(headers(1, RECORD))
    edge.protocol.pause_writing()
    assert (edge.socket.reading, edge.calls[1].congested) == (False, True)
    edge.calls[1].send(b"waits", 1)
    await asyncio.sleep(0)
    assert edge.socket.writes == []
    assert (1, "handed", 1) not in edge.events
    edge.protocol.resume_writing()
    assert message(b"waits") in edge.socket.writes[0]
    assert (edge.socket.reading, edge.calls[1].congested) == (True, False)
    assert (1, "handed", 1) in edge.events


async def test_megabytes_are_written_in_several_turns_and_others_go_between(edge: Edge) -> None:
    edge.protocol.data_received(settings({Setting.INITIAL_WINDOW_SIZE: 2**30}) + window_update(0, 2**30))
    edge.protocol.data_received(headers(1, RECORD) + headers(3))
    edge.socket.writes.clear()
    edge.calls[1].send(bytes(3_000_000))
    await asyncio.sleep(0)
    edge.protocol.data_received(data(3, message(b"token")))
    token = next(index for index, written in enumerate(edge.socket.writes) if message(b"token") in written)
    assert token < 3
    while sum(map(len, edge.socket.writes)) < 3_000_000:
        await asyncio.sleep(0)
    assert len(edge.socket.writes) > 10


async def test_who_breaks_the_rules_is_told_and_the_connection_closed(edge: Edge) -> None:
    edge.protocol.data_received(headers(1) + data(0, b"x"))
    (goaway,) = frames_in(edge.socket.writes[-1])
    assert (goaway.kind, edge.socket.closed) == (Kind.GOAWAY, True)
    assert edge.events[-1] == (1, "closed")


async def test_a_connection_without_calls_is_closed_when_it_is_to_leave(edge: Edge) -> None:
    edge.protocol.leave()
    await asyncio.sleep(0)
    assert kinds(list(frames_in(edge.socket.writes[0]))) == [Kind.GOAWAY]
    assert edge.socket.closed


async def test_a_connection_that_is_to_retire_stays_open(edge: Edge) -> None:
    edge.protocol.retire()
    await asyncio.sleep(0)
    assert kinds(list(frames_in(edge.socket.writes[0]))) == [Kind.GOAWAY]
    assert not edge.socket.closed


async def test_a_connection_that_is_to_leave_waits_for_its_calls(edge: Edge) -> None:
    edge.protocol.data_received(headers(1, RECORD))
    edge.protocol.leave()
    await asyncio.sleep(0)
    assert not edge.socket.closed
    edge.calls[1].finish()
    await asyncio.sleep(0)
    assert edge.socket.closed
    assert edge.events[-1] == (1, "closed")


async def test_a_connection_that_is_cut_ends_its_calls_and_is_forgotten(edge: Edge) -> None:
    edge.protocol.data_received(headers(1, RECORD))
    edge.calls[1].send(b"never written", 1)
    edge.protocol.abort()
    edge.protocol.connection_lost(None)
    assert edge.socket.aborted
    assert (edge.events[-1], edge.open) == ((1, "closed"), set())
    await asyncio.sleep(0)
    assert edge.socket.writes == []
    assert edge.protocol.closed.done()
