"""The transport over our own server: what counts as handed over has been written to a socket that takes more."""

from __future__ import annotations

import asyncio

import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from sidecar.extproc.sessions import SURFACE_METADATA, WIRE_METADATA
from sidecar.extproc.transport.http2 import METHOD, process
from sidecar.grpc_h2 import Connection, Limits, Status
from sidecar.grpc_h2.frames import END_STREAM, ErrorCode, Kind, Setting, rst_stream, settings, window_update
from sidecar.grpc_h2.unframer import Unframer
from sidecar.responses.errors import ApiError
from sidecar.responses.marks import Counts
from tests.core.extproc.test_grpc_aio import WIRES, Node, until
from tests.core.grpc_h2.peer import GREETING, Frame, data, frames_in, headers, message
from tests.core.python_calls import counted_calls


class Http2Node(Node):
    """One stream on such a registry, over a connection in memory; while it is ``full`` its socket takes nothing."""

    def __init__(self, wire: str, surface: str = "node") -> None:
        super().__init__(wire)
        self.frames: list[Frame] = []
        self.full = False
        self._unframer = Unframer(10_000_000)
        self.connection = Connection({METHOD: process(self.sessions)}, Limits(), self._wake)
        self.say(GREETING, headers(1, METHOD, changes={SURFACE_METADATA: surface, WIRE_METADATA: wire}))

    def _wake(self) -> None:
        asyncio.get_running_loop().call_soon(self.flush)

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.receive(piece)
        self.flush()

    def push(self, *messages: ProcessingRequest) -> None:
        self.say(*(data(1, message(one.SerializeToString())) for one in messages))

    def flush(self) -> None:
        if self.full or not self.connection.has_output:
            return
        frames = list(frames_in(self.connection.output()))
        self.connection.handed_over()
        self.frames += frames
        written = b"".join(frame.payload for frame in frames if frame.kind is Kind.DATA)
        self.context.taken += map(ProcessingResponse.FromString, self._unframer.feed(written))

    def close_the_window(self) -> None:
        """Let nothing more out on streams, whatever was granted."""
        self.say(settings({Setting.INITIAL_WINDOW_SIZE: 0}))

    async def ended(self) -> None:
        await until(lambda: not self.sessions.active)
        await self.sessions.settled()


@pytest.fixture(params=WIRES)
async def node(request: pytest.FixtureRequest) -> Http2Node:
    """A stream with three tokens of its answer."""
    node = Http2Node(request.param)
    await node.begin()
    return node


async def test_the_head_is_sent_before_anything_else_and_ends_envoy_s_retries() -> None:
    node = Http2Node("tunnel")
    assert [frame.kind for frame in node.frames if frame.stream] == [Kind.HEADERS]
    node.connection.lost()
    await node.ended()


async def test_a_whole_answer_is_settled_with_all_its_tokens(node: Http2Node) -> None:
    node.push(node.tokens("de"), *node.end())
    await node.ended()
    assert node.settled == [(True, 5, 0)]
    trailers, reset = node.frames[-2:]
    assert (trailers.kind, trailers.flags & END_STREAM) == (Kind.HEADERS, END_STREAM)
    assert (reset.kind, reset.code) == (Kind.RST_STREAM, ErrorCode.NO_ERROR)


async def test_what_waits_for_a_window_is_not_delivered(node: Http2Node) -> None:
    node.close_the_window()
    node.push(node.tokens("de"))
    assert Counts.of(node.report.delivered.written).output_tokens == 5
    assert node.report.delivered.counts.output_tokens == 3
    # Envoy gives the stream up: its client has left.
    node.say(rst_stream(1, ErrorCode.CANCEL))
    await node.ended()
    assert (node.settled, node.report.outcome) == ([(True, 3, 0)], "client_gone")


async def test_what_waits_for_a_full_socket_is_not_delivered(node: Http2Node) -> None:
    node.full = True
    node.push(node.tokens("de"))
    assert node.report.delivered.counts.output_tokens == 3
    node.connection.lost()
    await node.ended()
    assert node.settled == [(True, 3, 0)]


async def test_what_comes_last_waits_until_a_congested_stream_has_taken_all(node: Http2Node) -> None:
    node.close_the_window()
    node.push(node.tokens("de"))
    node.sessions.abort_all(ApiError("node_unavailable", "restarting"))
    await asyncio.sleep(0)
    assert (node.settled, node.sessions.active) == ([], 1)
    node.say(window_update(1, 100_000))
    await node.ended()
    assert node.settled == [(True, 5, 0)]


async def test_time_does_not_pass_while_envoy_does_not_read(node: Http2Node) -> None:
    (session,) = node.sessions._active
    assert session.due_at < 1e9
    node.close_the_window()
    node.push(node.tokens("de"))
    assert session.due_at > 1e9
    node.connection.lost()
    await node.ended()


async def test_envoy_ends_a_stream_that_it_needs_no_more(node: Http2Node) -> None:
    node.say(data(1, b"", end=True))
    await node.ended()
    assert (node.settled, node.report.outcome) == ([(True, 3, 0)], "client_gone")
    assert (node.frames[-1].kind, node.frames[-1].flags & END_STREAM) == (Kind.HEADERS, END_STREAM)


async def test_a_message_that_cannot_be_read_is_an_error_of_ours(node: Http2Node) -> None:
    node.say(data(1, message(b"\xff\xff")))
    await node.ended()
    assert node.report.outcome == "internal"


async def test_a_route_without_a_known_surface_is_told_so_by_a_status() -> None:
    node = Http2Node("tunnel", surface="none")
    _, trailers, reset = (frame for frame in node.frames if frame.stream)
    assert b"grpc-status" + bytes([2]) + str(int(Status.INTERNAL)).encode() in trailers.payload
    assert reset.code is ErrorCode.NO_ERROR
    assert node.sessions.active == 0


async def test_a_token_costs_few_calls() -> None:
    """Of the transport alone, from the read to the write: what comes with a token, and what comes with a read."""
    node = Http2Node("tunnel")
    await node.begin()
    node.report.delivered.cell = file = memoryview(bytearray(256))[8:16].cast("Q")
    tokens = [data(1, message(node.tokens(f"word{n:02d}").SerializeToString())) for n in range(60)]
    with counted_calls("sidecar.grpc_h2.", "sidecar.extproc.transport.") as calls:
        for first in range(0, len(tokens), 6):
            node.connection.receive(b"".join(tokens[first : first + 6]))
            node.connection.output()
            node.connection.handed_over()
    assert Counts.of(file[0]).output_tokens == 3 + 6 * len(tokens)
    reads = len(tokens) // 6
    per_token = {name: number for name, number in calls.items() if number > reads}
    assert per_token == dict.fromkeys(
        ["Connection._take_data", "Call.receive", "Call.send", "_Stream.handed"], len(tokens)
    )
    assert calls.total() - sum(per_token.values()) <= 8 * reads, calls
    node.connection.lost()
    await node.ended()
