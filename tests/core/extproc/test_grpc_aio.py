"""The transport over gRPC: what counts as handed over is what gRPC has taken, and what comes last waits for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from sidecar.exchange.asks import Ask, LastAsk
from sidecar.exchange.plan import Prepare
from sidecar.exchange.report import Report
from sidecar.extproc.sessions import SURFACE_METADATA, WIRE_METADATA, Sessions
from sidecar.extproc.transport.grpc_aio import ExtProcService
from sidecar.responses.errors import ApiError
from sidecar.responses.marks import Counts
from sidecar.surfaces import SURFACES
from tests.core import kit
from tests.core.extproc.test_session import (
    BODY,
    TUNNEL_HEAD,
    Clock,
    chunk,
    request_body,
    request_head,
    response_body,
    response_head,
    response_trailers,
)
from tests.core.extproc.toy_asks import Reserve, Settle
from tests.core.python_calls import counted_calls

WIRES = ("tunnel", "direct")


class Context:
    """gRPC's side of one RPC: it takes messages while it is ``open``, and breaks on demand."""

    def __init__(self, wire: str) -> None:
        self.incoming: asyncio.Queue[Any] = asyncio.Queue()
        self.taken: list[ProcessingResponse] = []
        self.waiting = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()
        self.broken = False
        self._wire = wire

    async def send_initial_metadata(self, _metadata: object) -> None:
        pass

    def invocation_metadata(self) -> list[tuple[str, str]]:
        return [(SURFACE_METADATA, "node"), (WIRE_METADATA, self._wire)]

    async def read(self) -> Any:
        return await self.incoming.get()

    async def write(self, message: bytes) -> None:
        if not self.open.is_set():
            self.waiting.set()
            await self.open.wait()
        if self.broken:
            raise grpc.aio.UsageError
        self.taken.append(ProcessingResponse.FromString(message))


class Node:
    """One stream on a registry that notes the report of each exchange when its last ask is performed."""

    def __init__(self, wire: str) -> None:
        self.settled: list[Counts] = []
        self.context = Context(wire)
        self._wire = wire
        self._report: Report | None = None
        table: dict[type[Ask[Any]] | type[LastAsk], Callable[[Any], Awaitable[object]]] = {
            Prepare: self._prepare,
            Reserve: self._reserve,
            Settle: self._settle,
        }
        self.sessions = Sessions(kit.catalog(), SURFACES, table, (self,), Clock())

    def observe(self, exchange: Any, _event: object, _commands: object) -> None:
        self._report = exchange.report

    @property
    def report(self) -> Report:
        assert self._report is not None
        return self._report

    async def _prepare(self, ask: Prepare) -> object:
        return ask.plan()

    async def _reserve(self, _ask: Reserve) -> str:
        return "receipt"

    async def _settle(self, _ask: Settle) -> None:
        self.settled.append(self.report.delivered.counts)

    def push(self, *messages: ProcessingRequest) -> None:
        for message in messages:
            self.context.incoming.put_nowait(message.SerializeToString())

    async def begin(self) -> None:
        """Let a request come, and the first three tokens of its answer."""
        self.push(request_head(), request_body(BODY))
        await until(lambda: len(self.context.taken) == 2)
        first = kit.text("abc")
        if self._wire == "tunnel":
            self.push(response_head(), response_body(TUNNEL_HEAD + chunk(first)))
        else:
            self.push(response_head(content_type="application/grpc"), response_body(first))
        await until(lambda: self.report.delivered.counts.output_tokens == 3)

    def tokens(self, text: str) -> ProcessingRequest:
        data = kit.text(text)
        return response_body(chunk(data) if self._wire == "tunnel" else data)

    def end(self) -> list[ProcessingRequest]:
        if self._wire == "tunnel":
            return [response_body(chunk(kit.final()) + b"0\r\n\r\n")]
        return [response_body(kit.response([], final=True)), response_trailers(grpc_status="0")]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[asyncio.Task[None]]:
        context: Any = self.context
        task = asyncio.create_task(ExtProcService(self.sessions).process(None, context))
        try:
            yield task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self.sessions.settled()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_whole_answer_is_settled_with_all_its_tokens(wire: str) -> None:
    node = Node(wire)
    async with node.serving() as stream:
        await node.begin()
        node.push(node.tokens("de"), *node.end())
        await stream
        await node.sessions.settled()
        assert node.settled == [(True, 5, 0)]


@pytest.mark.parametrize("wire", WIRES)
async def test_what_waits_in_a_congested_stream_is_not_delivered(wire: str) -> None:
    node = Node(wire)
    async with node.serving() as stream:
        await node.begin()
        node.context.open.clear()
        node.push(node.tokens("de"))
        await node.context.waiting.wait()
        assert Counts.of(node.report.delivered.written).output_tokens == 5
        assert node.report.delivered.counts.output_tokens == 3
        # Envoy gives the stream up: its client has left.
        stream.cancel()
        with suppress(asyncio.CancelledError):
            await stream
        await node.sessions.settled()
        assert node.settled == [(True, 3, 0)]


@pytest.mark.parametrize("wire", WIRES)
async def test_what_comes_last_waits_until_a_congested_stream_has_taken_all(wire: str) -> None:
    node = Node(wire)
    async with node.serving() as stream:
        await node.begin()
        node.context.open.clear()
        # The exchange ends by a tick's or a drain's doing while its words wait.
        node.sessions.abort_all(ApiError("node_unavailable", "restarting"))
        await node.context.waiting.wait()
        assert node.report.outcome == "node_unavailable"
        assert (node.settled, node.sessions.active) == ([], 1)
        node.context.open.set()
        await stream
        await node.sessions.settled()
        assert node.settled == [(True, 3, 0)]


@pytest.mark.parametrize("wire", WIRES)
async def test_messages_that_were_never_taken_do_not_count(wire: str) -> None:
    node = Node(wire)
    async with node.serving() as stream:
        await node.begin()
        node.context.broken = True
        node.push(node.tokens("de"), *node.end())
        await stream
        await node.sessions.settled()
        assert node.settled == [(True, 3, 0)]


@pytest.mark.parametrize("wire", WIRES)
async def test_at_a_drains_end_nothing_more_is_waited_for(wire: str) -> None:
    node = Node(wire)
    async with node.serving():
        await node.begin()
        node.context.open.clear()
        node.push(node.tokens("de"))
        await node.context.waiting.wait()
        node.sessions.close_all()
        await node.sessions.settled()
        assert (node.settled, node.sessions.active) == ([(True, 3, 0)], 0)
        # What gRPC takes now changes no cell that may serve another.
        cell = node.report.delivered.cell
        node.context.open.set()
        await until(lambda: len(node.context.taken) > 4)
        assert node.report.delivered.cell is cell
        assert node.settled == [(True, 3, 0)]


async def test_handing_a_token_over_calls_nothing() -> None:
    """The mark of a token is stored without a Python call, into the bytes of a mapped file as into a list."""
    node = Node("tunnel")
    async with node.serving():
        await node.begin()
        file = memoryview(bytearray(256))[8:16].cast("Q")
        node.report.delivered.cell = file
        tokens = [f"word{number:02d}" for number in range(50)]
        node.push(*(node.tokens(token) for token in tokens))
        with counted_calls("sidecar.") as calls:
            while Counts.of(file[0]).output_tokens < 3 + 6 * len(tokens):
                await asyncio.sleep(0)
        ours = {
            name: number for name, number in calls.items() if name.startswith(("_Stream.", "Session.", "Delivered."))
        }
        # The session receives, takes and sends; the transport sends, looks whether to flush, flushes, and says so.
        assert sum(ours.values()) <= 7 * len(tokens) + 5, ours
