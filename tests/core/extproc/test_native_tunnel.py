"""Calls of native upstreams through the tunnel: several on one connection, and what a delta costs."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingResponse
from hypothesis import given
from hypothesis import strategies as st

from sidecar.exchange.plan import Prepare
from sidecar.extproc.driver import Done
from sidecar.extproc.session import Session
from sidecar.extproc.wires import WIRES
from tests.core.backends.native.streams import delta, opening, stream
from tests.core.exchange import native_kit as native
from tests.core.extproc.test_session import (
    Clock,
    chunk,
    request_body,
    request_head,
    response_body,
    response_head,
)
from tests.core.python_calls import counted_calls
from tests.core.splits import split_at
from tests.core.sse import parse

BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\nx-local-reply: 503\r\n\r\n{}"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Envoy:
    """Envoy's end of the stream: what it was sent."""

    congested = False

    def __init__(self) -> None:
        self.sent: list[ProcessingResponse] = []
        self.closed = False

    def send(self, message: bytes, mark: int) -> None:
        self.sent.append(ProcessingResponse.FromString(message))

    def close(self) -> None:
        self.closed = True

    def written(self) -> bytes:
        """What went into the tunnel."""
        bodies = [message.request_body for message in self.sent if message.HasField("request_body")]
        return b"".join(body.response.body_mutation.streamed_response.body for body in bodies)

    def told(self) -> bytes:
        """What went to the client."""
        bodies = [message.response_body for message in self.sent if message.HasField("response_body")]
        return b"".join(body.response.body_mutation.streamed_response.body for body in bodies)


def called(wire: str = "tunnel") -> tuple[Envoy, Session]:
    envoy = Envoy()
    session = Session(envoy, native.exchange(), WIRES[wire](), {Prepare: lambda ask: Done(ask.plan())}, (), Clock())
    body = native.request(stream=True).body
    for message in (request_head(False, **{":path": "/v1/responses"}), request_body(body), response_head()):
        session.receive(message.SerializeToString())
    return envoy, session


def give(session: Session, pieces: Sequence[bytes], *, close: bool = False) -> None:
    for piece in pieces:
        session.receive(response_body(piece).SerializeToString())
    if close:
        session.receive(response_body(b"", end=True).SerializeToString())


def chunks(stream: bytes) -> bytes:
    return b"".join(chunk(part + b"\n\n") for part in stream.split(b"\n\n")[:-1]) + b"0\r\n\r\n"


def requests(written: bytes) -> list[tuple[dict[str, str], bytes]]:
    """The HTTP requests in what was written: their headers and bodies."""
    found = []
    while written:
        head, _, rest = written.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name: value for name, _, value in (line.partition(": ") for line in lines)}
        size = int(headers["content-length"])
        found.append(({"first": first, **headers}, rest[:size]))
        written = rest[size:]
    return found


@given(st.lists(st.integers(0, 2000), max_size=10))
def test_a_second_call_goes_through_the_same_tunnel(cuts: list[int]) -> None:
    envoy, session = called()
    whole = stream("Hi", " there")
    give(session, split_at(BUSY + HEAD + chunks(whole), [*cuts, len(BUSY)]))
    first, second = requests(envoy.written())
    assert first[0]["first"] == second[0]["first"] == "POST /base/v1/responses HTTP/1.1"
    assert (first[0]["host"], second[0]["host"]) == ("native.up0", "native.up1")
    assert first[0]["connection"] == second[0]["connection"] == "keep-alive"
    assert json.loads(second[1])["model"] == "gpt-at-1"
    assert len([message for message in envoy.sent if message.HasField("request_headers")]) == 1
    types = [line[7:].decode() for line in whole.split(b"\n") if line.startswith(b"event:")]
    assert [event.type for event in parse(envoy.told())] == types
    assert envoy.closed


@pytest.mark.parametrize("together", [True, False])
def test_a_tunnel_that_closes_takes_no_second_call(together: bool) -> None:
    envoy, session = called()
    if together:
        session.receive(response_body(BUSY, end=True).SerializeToString())
    else:
        give(session, [BUSY], close=True)
    assert envoy.sent[-1].immediate_response.status.code == 503
    assert envoy.closed


def test_a_broken_tunnel_is_an_answer_that_was_cut() -> None:
    envoy, session = called()
    give(session, [HEAD + chunk(opening() + delta(2, "x"))], close=True)
    assert b"stream_interrupted" in envoy.told()
    assert envoy.closed


@pytest.mark.parametrize("wire", ["direct", "origin"])
def test_other_wires_reach_no_native_upstream(wire: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        envoy, _ = called(wire)
    (only,) = envoy.sent
    assert only.immediate_response.status.code == 503
    assert "another wire than the tunnel" in caplog.text


def test_a_delta_takes_few_calls() -> None:
    envoy, session = called()
    give(session, [HEAD, chunk(opening() + delta(2, "Hi"))])
    messages = [response_body(chunk(delta(number, f" word{number}"))).SerializeToString() for number in range(10, 60)]
    session.receive(messages[0])
    before = len(envoy.sent)
    with counted_calls("sidecar.") as calls:
        for message in messages[1:]:
            session.receive(message)
    assert len(envoy.sent) == before + 49
    assert calls.total() <= 11 * 49
