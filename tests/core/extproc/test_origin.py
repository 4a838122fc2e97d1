"""The session on the origin wire: the response is its own, and what calls the upstream is told what it must be."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import HttpHeaders, ProcessingResponse, StreamedBodyResponse
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from sidecar.backends.triton.call import PATH
from sidecar.extproc import messages
from sidecar.extproc.wires.origin import Nobody, OriginWire
from sidecar.grpc_h2 import Answer, Outgoing
from tests.core import kit
from tests.core.extproc.test_session import (
    BODY,
    CALLER,
    TOLD,
    Run,
    Start,
    metadata,
    request_body,
    request_head,
    response_head,
    start,
)
from tests.core.sse import parse

__all__ = ["start"]

HEAD = {":status": "200", "content-type": "application/grpc"}
OK = {"grpc-status": "0"}
UNAVAILABLE = {**HEAD, "grpc-status": "14", "grpc-message": "no healthy upstream"}


class Upstream:
    """What makes the calls, in memory: it notes the only one, and what becomes of it."""

    def __init__(self) -> None:
        self.answer: Answer
        self.made = asyncio.Event()
        self.cancels = self.resumes = 0

    def call(self, path: str, metadata: Mapping[str, str], body: bytes, answer: Answer) -> Outgoing:
        assert not self.made.is_set()
        self.path, self.metadata, self.body, self.answer = path, metadata, body, answer
        self.made.set()
        return cast(Outgoing, self)

    def cancel(self) -> None:
        self.cancels += 1

    def resume(self) -> None:
        self.resumes += 1


class Sent(NamedTuple):
    """A message of a response of our own: its head, or a piece of its body and whether that ends it."""

    head: dict[str, str] | None
    body: bytes = b""
    end: bool = False


def members(message: Message) -> dict[int, bytes]:
    """The members of a message that its type does not know."""
    fields: Any = UnknownFieldSet(message)
    return {field.field_number: field.data for field in fields}


def own(message: ProcessingResponse) -> Sent:
    """What Envoy reads as ``streamed_immediate_response``, which the packaged protos do not know."""
    assert message.WhichOneof("response") is None
    ((kind, member),) = members(Empty.FromString(members(message)[11])).items()
    if kind == 1:
        return Sent(messages.headers_of(HttpHeaders.FromString(member).headers))
    body = StreamedBodyResponse.FromString(member)
    return Sent(None, body.body, body.end_of_stream)


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
async def run(start: Start, upstream: Upstream) -> Run:
    """A session that has called the upstream."""
    run = start(OriginWire(upstream))
    run.push(request_head(False, **CALLER), request_body(BODY))
    await asyncio.wait_for(upstream.made.wait(), 5)
    return run


async def test_the_call_is_made_and_envoy_told_nothing(run: Run, upstream: Upstream) -> None:
    assert (upstream.path, dict(upstream.metadata)) == (PATH, {"x-request-id": "r-1"})
    assert upstream.body.startswith(b"\0" + (len(upstream.body) - 5).to_bytes(4))
    assert run.envoy.rest() == []


async def test_a_stream_has_its_head_with_the_first_token(run: Run, upstream: Upstream) -> None:
    upstream.answer.begun(HEAD)
    assert run.envoy.rest() == []
    upstream.answer.received(kit.text("Hel"))
    head, opening = map(own, run.envoy.rest())
    assert head.head is not None
    assert (head.head[":status"], head.head["content-type"]) == ("200", "text/event-stream; charset=utf-8")
    assert parse(opening.body)[-1].data["delta"] == "Hel"
    upstream.answer.received(kit.text("lo"))
    upstream.answer.received(kit.response([], final=True))
    upstream.answer.ended(OK)
    token, last = await run.finished()
    assert parse(own(token).body)[0].data["delta"] == "lo"
    assert (parse(own(last).body)[-1].type, own(last).end) == ("response.completed", True)
    assert metadata(last).items() >= {**TOLD, "outcome": "completed", "output_tokens": 5}.items()
    # The head counts for nothing; what follows it counts as far as it goes.
    assert run.envoy.marks[0] == 0
    assert sorted(run.envoy.marks) == run.envoy.marks
    assert upstream.cancels == 0


async def test_an_answer_that_is_no_stream_comes_whole(start: Start, upstream: Upstream) -> None:
    run = start(OriginWire(upstream))
    run.push(request_head(), request_body(kit.request().body))
    await asyncio.wait_for(upstream.made.wait(), 5)
    upstream.answer.begun(HEAD)
    upstream.answer.received(kit.text("Hello") + kit.response([], final=True))
    upstream.answer.ended(OK)
    head, last = map(own, await run.finished())
    assert head.head is not None
    assert (head.head["content-type"], head.head["content-length"]) == ("application/json", str(len(last.body)))
    assert json.loads(last.body)["output"][0]["content"][0]["text"] == "Hello"
    assert last.end


# What comes instead of a first token: the head of the answer, and its trailers.
FAILURES: dict[str, tuple[Mapping[str, str] | None, Mapping[str, str] | None, str]] = {
    "nobody is there": (None, None, "unreachable"),
    "Envoy knows of nobody": ({**UNAVAILABLE, "x-local-reply": "503"}, UNAVAILABLE, "unreachable"),
    "Envoy has waited too long": ({**UNAVAILABLE, "x-local-reply": "504"}, UNAVAILABLE, "timeout"),
    "another than a Triton": ({":status": "404"}, {}, "unreachable"),
    "it breaks off": (HEAD, None, "ended_early"),
    "it ends without a word": (HEAD, {}, "ended_early"),
    "Triton refuses": (HEAD, {"grpc-status": "8", "grpc-message": "queue is full"}, "queue_full"),
}


@pytest.mark.parametrize(("head", "trailers", "failure"), FAILURES.values(), ids=FAILURES)
async def test_a_call_that_fails_first_is_a_plain_error(
    run: Run,
    upstream: Upstream,
    head: Mapping[str, str] | None,
    trailers: Mapping[str, str] | None,
    failure: str,
) -> None:
    if head is not None:
        upstream.answer.begun(head)
        if head[":status"] != "200":
            upstream.answer.received(b"<html>")
    upstream.answer.ended(trailers)
    (reply,) = await run.finished()
    assert reply.immediate_response.status.code == 503
    assert metadata(reply)["output_tokens"] == 0
    told = run.exchange.report.backend_error
    assert told is not None
    assert told.failure == failure


async def test_a_call_that_breaks_later_is_an_error_event(run: Run, upstream: Upstream) -> None:
    upstream.answer.begun(HEAD)
    upstream.answer.received(kit.text("Hel"))
    upstream.answer.ended(None)
    *_, last = await run.finished()
    assert parse(own(last).body)[-1].type == "error"
    assert own(last).end
    assert metadata(last)["output_tokens"] == 3


async def test_an_end_that_triton_did_not_mark_is_none(run: Run, upstream: Upstream) -> None:
    upstream.answer.begun(HEAD)
    upstream.answer.received(kit.text("Hel"))
    upstream.answer.ended(OK)
    *_, last = await run.finished()
    assert parse(own(last).body)[-1].type == "error"


async def test_who_leaves_ends_the_call(run: Run, upstream: Upstream) -> None:
    upstream.answer.begun(HEAD)
    run.session.lost()
    assert upstream.cancels == 1
    assert run.exchange.report.outcome == "client_gone"


async def test_an_answer_that_ends_before_the_model_ends_the_call(run: Run, upstream: Upstream) -> None:
    upstream.answer.begun(HEAD)
    upstream.answer.received(kit.text("Hel"))
    run.clock.now += 1000
    run.session.tick()
    await run.finished()
    assert upstream.cancels == 1


async def test_a_client_that_does_not_read_holds_its_call_up(run: Run, upstream: Upstream) -> None:
    assert not upstream.answer.congested
    run.envoy.congested = True
    assert upstream.answer.congested
    run.envoy.congested = False
    run.session.drained()
    assert upstream.resumes == 1


async def test_a_silent_model_s_stream_is_kept_alive(run: Run, upstream: Upstream) -> None:
    upstream.answer.begun(HEAD)
    upstream.answer.received(kit.text("Hel"))
    run.envoy.rest()
    run.clock.now = run.session.due_at
    run.session.tick()
    (comment,) = run.envoy.rest()
    assert own(comment).body == b": keep-alive\n\n"


async def test_an_answer_of_envoy_s_own_is_passed_on_while_a_request_comes(start: Start, upstream: Upstream) -> None:
    run = start(OriginWire(upstream))
    run.push(request_head(), response_head("408", end=True))
    (head,) = await run.finished()
    assert head.HasField("response_headers")
    assert not upstream.made.is_set()


async def test_without_an_upstream_the_log_says_what_is_missing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    run = start(OriginWire(Nobody()))
    with caplog.at_level(logging.ERROR):
        run.push(request_head(), request_body(BODY))
        (reply,) = await run.finished()
    assert reply.immediate_response.status.code == 503
    assert "triton.upstream" in caplog.text


def test_a_token_s_message_is_what_the_library_would_write() -> None:
    for data in (b"x", b"y" * 100, b"z" * 200, b"w" * 70_000):
        wire = OriginWire(Upstream())
        assert own(ProcessingResponse.FromString(wire.body(data))) == Sent(None, data)
