"""The ext_proc session over an in-memory stream: the order of messages that Envoy needs, where it makes the call."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import cast

import pytest
from envoy.config.core.v3.base_pb2 import HeaderMap, HeaderValue
from envoy.service.ext_proc.v3.external_processor_pb2 import (
    HttpBody,
    HttpHeaders,
    HttpTrailers,
    ProcessingRequest,
    ProcessingResponse,
)

from sidecar.admission.admission import Admission
from sidecar.admission.bookkeeper import Reserved
from sidecar.admission.entries import Admitted, ReservationRequest, Settlement
from sidecar.admission.slots import SLOT_BYTES, Slot
from sidecar.backends.triton.frames import frame
from sidecar.config.models import ImageLimits
from sidecar.egress.budget import ByteBudget
from sidecar.egress.loader import ImageLoader
from sidecar.exchange.commands import Command
from sidecar.exchange.events import Event
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.plan import Prepare
from sidecar.extproc.session import Session
from sidecar.extproc.wires import WIRES, Wire
from sidecar.images.image import Image, ImageRef
from sidecar.responses.errors import ApiError
from sidecar.server.performers import make_performers
from sidecar.server.preparation import LANES, LaneElsewhere, Preparation, in_threads
from tests.core import kit
from tests.core.in_place import InPlace
from tests.core.python_calls import counted_calls
from tests.core.sse import parse

TUNNEL_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc-web+proto\r\ntransfer-encoding: chunked\r\n\r\n"
BODY = kit.request(stream=True).body


class Envoy:
    """Envoy's end of the stream, in memory."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[ProcessingResponse] = asyncio.Queue()
        self.marks: list[int] = []
        self.closed = asyncio.Event()
        self.congested = False

    def send(self, message: bytes, mark: int) -> None:
        self.received.put_nowait(ProcessingResponse.FromString(message))
        self.marks.append(mark)

    def close(self) -> None:
        self.closed.set()

    async def take(self) -> ProcessingResponse:
        return await asyncio.wait_for(self.received.get(), 5)

    def rest(self) -> list[ProcessingResponse]:
        return [self.received.get_nowait() for _ in range(self.received.qsize())]


class Clock:
    """Time that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def unix(self) -> float:
        return 1_800_000_000.0


def header_map(headers: dict[str, str]) -> HeaderMap:
    return HeaderMap(headers=[HeaderValue(key=key, raw_value=value.encode()) for key, value in headers.items()])


def request_head(end: bool = False, **headers: str) -> ProcessingRequest:
    common = {"content-type": "application/json", "x-request-id": "r-1", "grpc-timeout": "1m", **kit.CREATE}
    return ProcessingRequest(request_headers=HttpHeaders(headers=header_map({**common, **headers}), end_of_stream=end))


def request_body(data: bytes, end: bool = True) -> ProcessingRequest:
    return ProcessingRequest(request_body=HttpBody(body=data, end_of_stream=end))


def response_head(status: str = "200", end: bool = False, **headers: str) -> ProcessingRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ProcessingRequest(
        response_headers=HttpHeaders(headers=header_map({":status": status, **named}), end_of_stream=end)
    )


def response_body(data: bytes, end: bool = False) -> ProcessingRequest:
    return ProcessingRequest(response_body=HttpBody(body=data, end_of_stream=end))


def response_trailers(**trailers: str) -> ProcessingRequest:
    named = {name.replace("_", "-"): value for name, value in trailers.items()}
    return ProcessingRequest(response_trailers=HttpTrailers(trailers=header_map(named)))


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class AdmitsAll:
    """In place of admission: what that does is its own tests' matter."""

    async def reserve(self, request: ReservationRequest) -> Reserved:
        return Reserved(Slot(memoryview(bytearray(SLOT_BYTES)), request.id, request.input_tokens), Admitted())

    async def settle(self, slot: Slot, settlement: Settlement, organization: str) -> None:
        pass


ADMITS_ALL = cast(Admission, AdmitsAll())


class Run:
    """One session under test."""

    def __init__(self, wire: Wire, exchange: Exchange, executor: ThreadPoolExecutor, images: ImageLoader) -> None:
        self.envoy, self.clock, self.exchange = Envoy(), Clock(), exchange
        preparation = Preparation([LaneElsewhere(LANES[-1], in_threads(executor, Prepare.plan))])
        performers = make_performers(
            preparation, InPlace(), ADMITS_ALL, images, executor, limits=ImageLimits(), worker="w1"
        )
        self.session = Session(self.envoy, exchange, wire, performers, (), self.clock)

    def push(self, *messages: ProcessingRequest) -> None:
        for message in messages:
            self.session.receive(message.SerializeToString())

    async def call(self, *messages: ProcessingRequest) -> tuple[ProcessingResponse, ProcessingResponse]:
        """Send a request, the usual one by default, and take the two messages that make the upstream call."""
        self.push(*(messages or (request_head(), request_body(BODY))))
        return await self.envoy.take(), await self.envoy.take()

    async def finished(self) -> list[ProcessingResponse]:
        """What comes until the stream is closed."""
        await asyncio.wait_for(self.envoy.closed.wait(), 5)
        return self.envoy.rest()


Start = Callable[..., Run]


@pytest.fixture
def start() -> Iterator[Start]:
    runs: list[Run] = []
    with ThreadPoolExecutor(1) as executor:

        def begin(
            wire: str | Wire = "tunnel", exchange: Exchange | None = None, images: ImageLoader | None = None
        ) -> Run:
            loader = images or ImageLoader(ImageLimits(), InPlace(), executor)
            made = WIRES[wire]() if isinstance(wire, str) else wire
            runs.append(Run(made, exchange or kit.exchange(), executor, loader))
            return runs[-1]

        yield begin
        for run in runs:
            run.session.lost()


def streamed(message: ProcessingResponse) -> tuple[bytes, bool]:
    response = message.response_body.response.body_mutation.streamed_response
    return response.body, response.end_of_stream


def streamed_request(message: ProcessingResponse) -> bytes:
    body: bytes = message.request_body.response.body_mutation.streamed_response.body
    return body


def set_headers(message: ProcessingResponse) -> dict[str, str]:
    kind = getattr(message, message.WhichOneof("response"))
    mutation = kind.response.header_mutation if hasattr(kind, "response") else kind.headers
    return {option.header.key: option.header.raw_value.decode() for option in mutation.set_headers}


async def test_the_tunnel_carries_one_http_request_that_never_ends(start: Start) -> None:
    head, body = await start().call()
    assert head.WhichOneof("response") == "request_headers"
    sent = body.request_body.response.body_mutation.streamed_response
    assert not sent.end_of_stream
    lines, _, payload = sent.body.partition(b"\r\n\r\n")
    assert lines.startswith(b"POST /inference.GRPCInferenceService/ModelStreamInfer HTTP/1.1\r\n")
    assert b"\r\ncontent-length: %d\r\n" % len(payload) in lines
    assert b"x-request-id: r-1" in lines
    assert b"grpc-timeout" not in lines


async def test_a_long_request_is_sent_in_messages_that_envoy_takes(start: Start) -> None:
    run = start(exchange=kit.exchange(kit.model(400_000, context_length=1_000_000)))
    run.push(request_head(), request_body(BODY))
    first, second, third = [await run.envoy.take() for _ in range(3)]
    assert first.HasField("request_headers")
    bodies = [message.request_body.response.body_mutation.streamed_response.body for message in (second, third)]
    assert [len(bodies[0]), len(bodies[1]) < 1 << 20] == [1 << 20, True]


async def test_a_stream_through_the_tunnel(start: Start) -> None:
    run = start()
    await run.call()
    run.push(response_head())
    run.push(response_body(TUNNEL_HEAD + chunk(kit.text("Hel"))))
    head, opening = await run.envoy.take(), await run.envoy.take()
    assert set_headers(head)["content-type"] == "text/event-stream; charset=utf-8"
    events, end = streamed(opening)
    assert not end
    assert parse(events)[-1].data["delta"] == "Hel"
    run.push(response_body(chunk(kit.text("lo")) + chunk(kit.text("!")) + chunk(kit.final()) + b"0\r\n\r\n"))
    (last,) = await run.finished()
    events, end = streamed(last)
    assert end
    assert [event.data.get("delta") for event in parse(events)[:2]] == ["lo", "!"]
    assert parse(events)[-1].type == "response.completed"


async def test_a_body_in_pieces_with_an_empty_end_is_one_request(start: Start) -> None:
    run = start()
    head, _ = await run.call(
        request_head(), request_body(BODY[:9], end=False), request_body(BODY[9:], end=False), request_body(b"")
    )
    assert head.HasField("request_headers")


CALLER = {"x-responses-organization": "org_1", "x-responses-key": "key_1"}
TOLD = {"organization": "org_1", "key": "key_1", "model": "letters"}


def metadata(message: ProcessingResponse) -> dict[str, object]:
    return dict(message.dynamic_metadata["responses"].items()) if message.HasField("dynamic_metadata") else {}


async def test_only_the_last_message_through_the_tunnel_tells_envoy_what_was_used(start: Start) -> None:
    run = start()
    await run.call(request_head(False, **CALLER), request_body(BODY))
    run.push(response_head(), response_body(TUNNEL_HEAD + chunk(kit.text("Hel"))))
    run.push(response_body(chunk(kit.text("lo")) + chunk(kit.final()) + b"0\r\n\r\n"))
    *earlier, last = await run.finished()
    assert [metadata(message) for message in earlier] == [{}, {}]
    usage = parse(streamed(last)[0])[-1].data["response"]["usage"]
    assert usage["output_tokens"] > 0
    counts = {name: usage[name] for name in ("input_tokens", "output_tokens", "total_tokens")}
    details = {"cached_tokens": 0, "reasoning_tokens": 0}
    assert metadata(last) == {**TOLD, "outcome": "completed", **counts, **details}


async def test_over_the_direct_wire_the_trailers_tell_it(start: Start) -> None:
    run = start("direct")
    await run.call(request_head(False, **CALLER), request_body(BODY))
    run.push(response_head(content_type="application/grpc"), response_body(kit.text("Hel")))
    run.push(response_body(kit.response([], final=True)), response_trailers(grpc_status="0"))
    *earlier, trailers = await run.finished()
    assert not any(map(metadata, earlier))
    assert metadata(trailers).items() >= {**TOLD, "outcome": "completed", "output_tokens": 3}.items()


async def test_an_answer_that_breaks_tells_what_was_generated(start: Start) -> None:
    run = start()
    await run.call(request_head(False, **CALLER), request_body(BODY))
    run.push(response_head(), response_body(TUNNEL_HEAD + chunk(kit.text("Hel"))), response_body(b"", end=True))
    *_, last = await run.finished()
    failed, error = parse(streamed(last)[0])
    told = metadata(last)
    assert told.items() >= {**TOLD, "outcome": error.data["code"]}.items()
    assert told["output_tokens"] == failed.data["response"]["usage"]["output_tokens"] == 3


async def test_a_plain_error_tells_that_nothing_was_used(start: Start) -> None:
    run = start()
    await run.call(request_head(False, **CALLER), request_body(BODY))
    run.push(response_head("503", end=True))
    (failure,) = await run.finished()
    expected = {**TOLD, "outcome": "infer_backend_unavailable", "input_tokens": 0, "total_tokens": 0}
    assert metadata(failure).items() >= expected.items()


async def test_a_refusal_is_an_immediate_response_marked_as_ours(start: Start) -> None:
    run = start()
    run.push(request_head(), request_body(b"{"))
    (refusal,) = await run.finished()
    immediate = refusal.immediate_response
    assert immediate.status.code == 400
    assert immediate.details == "responses_invalid_request"
    assert json.loads(immediate.body)["error"]["code"] == "invalid_request"
    assert immediate.headers.set_headers[0].header.raw_value == b"application/json"


async def test_a_body_beyond_every_models_limit_is_refused_with_its_whole_size(start: Start) -> None:
    run = start()
    run.push(request_head(), request_body(b" " * 900, end=False), request_body(b" " * 900))
    (refusal,) = await run.finished()
    assert refusal.immediate_response.status.code == 413
    message = json.loads(refusal.immediate_response.body)["error"]["message"]
    assert message == "Request body is 1800 bytes; this node accepts at most 1000"


async def test_a_request_without_a_body_is_refused(start: Start) -> None:
    run = start()
    run.push(request_head(end=True))
    (refusal,) = await run.finished()
    assert refusal.immediate_response.status.code == 400


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([response_head("503", end=True)], 503),
        ([response_head(), response_body(b"", end=True)], 503),
        ([response_head(), response_body(b"HTTP/1.1 504 Gateway Timeout\r\ngrpc-status: 14\r\n\r\n")], 503),
        ([response_head(), response_body(b"HTTP/1.1 200 OK\r\ngrpc-status: 14\r\ncontent-length: 0\r\n\r\n")], 503),
        ([response_head(), response_body(b"nonsense\r\n\r\n")], 503),
    ],
)
async def test_a_tunnel_that_fails_first_is_a_plain_error(
    start: Start, messages: Iterable[ProcessingRequest], status: int
) -> None:
    run = start()
    await run.call()
    run.push(*messages)
    (failure,) = await run.finished()
    assert failure.immediate_response.status.code == status


async def test_a_tunnel_that_breaks_ends_the_stream_with_an_error_event(start: Start) -> None:
    run = start()
    await run.call()
    run.push(response_head(), response_body(TUNNEL_HEAD + chunk(kit.text("Hel"))), response_body(b"", end=True))
    *_, last = await run.finished()
    events, end = streamed(last)
    assert end
    assert [event.type for event in parse(events)] == ["response.failed", "error"]


async def test_the_direct_wire_is_one_grpc_call_without_foreign_headers(start: Start) -> None:
    head, body = await start("direct").call()
    mutation = head.request_headers.response.header_mutation
    assert set_headers(head) == {
        ":path": "/inference.GRPCInferenceService/ModelStreamInfer",
        ":method": "POST",
        "content-type": "application/grpc",
        "te": "trailers",
        "x-request-id": "r-1",
    }
    assert list(mutation.remove_headers) == ["grpc-timeout"]
    sent = body.request_body.response.body_mutation.streamed_response
    assert sent.end_of_stream
    assert sent.body[:5] == frame(sent.body[5:])[:5]


async def test_a_stream_over_the_direct_wire_ends_with_its_trailers(start: Start) -> None:
    run = start("direct")
    await run.call()
    run.push(response_head(content_type="application/grpc"), response_body(kit.text("Hel")))
    run.push(response_body(kit.response([], final=True)), response_trailers(grpc_status="0", grpc_message=""))
    head, _, last, trailers = await run.finished()
    assert "grpc-status" in head.response_headers.response.header_mutation.remove_headers
    events, end = streamed(last)
    assert not end
    assert parse(events)[-1].type == "response.completed"
    assert list(trailers.response_trailers.header_mutation.remove_headers) == ["grpc-status", "grpc-message"]


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (response_head("503", end=True), 503),
        (response_head("504", end=True, content_type="application/json"), 503),
        (response_head(end=True, content_type="application/grpc", grpc_status="14"), 503),
    ],
)
async def test_a_direct_call_that_fails_first_is_a_plain_error(
    start: Start, message: ProcessingRequest, status: int
) -> None:
    run = start("direct")
    await run.call()
    run.push(message)
    (failure,) = await run.finished()
    assert failure.immediate_response.status.code == status


@pytest.mark.parametrize("wire", ["tunnel", "direct"])
async def test_a_token_takes_few_calls(wire: str, start: Start) -> None:
    run = start(wire)
    await run.call()
    framed = chunk if wire == "tunnel" else bytes
    run.push(response_head(content_type="application/grpc"))
    run.push(response_body((TUNNEL_HEAD if wire == "tunnel" else b"") + framed(kit.text("a"))))
    token = response_body(framed(kit.text("b"))).SerializeToString()
    run.session.receive(token)
    with counted_calls("sidecar.") as calls:
        for _ in range(20):
            run.session.receive(token)
    events, _ = streamed(run.envoy.rest()[-1])
    assert [event.data["delta"] for event in parse(events)] == ["b"]
    # Eleven of the exchange, the others from Envoy's message to it and back.
    assert calls.total() <= 17 * 20, calls


async def test_ticks_keep_a_stream_alive_and_end_a_silent_one(start: Start) -> None:
    run = start()
    await run.call()
    run.push(response_head(), response_body(TUNNEL_HEAD + chunk(kit.text("Hel"))))
    await run.envoy.take(), await run.envoy.take()
    run.clock.now += 3.5
    run.session.tick()
    assert streamed(await run.envoy.take()) == (b": keep-alive\n\n", False)
    run.clock.now += 5
    run.session.tick()
    events, end = streamed(await run.envoy.take())
    assert (parse(events)[-1].type, end) == ("error", True)
    assert await run.finished() == []


async def test_an_abort_ends_a_running_session(start: Start) -> None:
    run = start()
    await run.call()
    run.session.abort(ApiError("node_unavailable", "restarting"))
    assert (await run.envoy.take()).immediate_response.status.code == 503
    assert await run.finished() == []


class Broken(Exchange):
    """An exchange with a fault in it."""

    def __init__(self, sound: Exchange, at: str) -> None:
        self.__dict__.update(sound.__dict__)
        self.at = at

    def handle(self, event: Event) -> list[Command]:
        if type(event).__name__ == self.at:
            raise RuntimeError("a secret prompt")
        return super().handle(event)


async def test_a_fault_before_the_head_is_an_internal_error_with_the_request_id(start: Start) -> None:
    run = start(exchange=Broken(kit.exchange(), "RequestComplete"))
    run.push(request_head(), request_body(BODY))
    (failure,) = await run.finished()
    assert failure.immediate_response.status.code == 500
    error = json.loads(failure.immediate_response.body)["error"]
    assert (error["code"], error["message"]) == ("internal", "internal error (request r-1)")


async def test_a_fault_after_the_head_is_an_error_event(start: Start) -> None:
    run = start(exchange=Broken(kit.exchange(), "UpstreamEnd"))
    await run.call()
    run.push(response_head(), response_body(TUNNEL_HEAD + chunk(kit.text("Hel"))), response_body(b"", end=True))
    *_, last = await run.finished()
    events, end = streamed(last)
    assert (parse(events)[-1].data["code"], end) == ("internal", True)
    assert b"secret" not in events


async def test_a_client_that_leaves_ends_the_exchange(start: Start) -> None:
    run = start()
    await run.call()
    run.session.lost()
    assert run.exchange.done
    assert run.exchange.report.outcome == "client_gone"
    run.push(response_head(), response_body(TUNNEL_HEAD + chunk(kit.text("Hel"))))
    assert run.envoy.rest() == []


async def test_an_answer_that_envoy_made_itself_passes_unchanged(start: Start) -> None:
    run = start()
    run.push(request_head(), response_head("413"), response_body(b"too", end=False), response_body(b"big", True))
    head, *bodies = await run.finished()
    assert not head.response_headers.response.header_mutation.set_headers
    assert [streamed(body) for body in bodies] == [(b"too", False), (b"big", True)]


async def test_images_are_loaded_before_the_call(start: Start) -> None:
    run = start(exchange=kit.exchange(kit.image_model()))
    url = "data:image/png;base64," + base64.b64encode(kit.PNG).decode()
    _, body = await run.call(request_head(), request_body(kit.image_request(url).body))
    assert base64.b64encode(kit.PNG) in streamed_request(body)


async def test_an_image_that_cannot_be_had_is_a_plain_error(start: Start) -> None:
    run = start(exchange=kit.exchange(kit.image_model()))
    run.push(request_head(), request_body(kit.image_request("https://127.0.0.1/cat.png").body))
    (refusal,) = await run.finished()
    assert refusal.immediate_response.status.code == 403
    error = json.loads(refusal.immediate_response.body)["error"]
    assert (error["code"], error["param"]) == ("egress_denied", "input[0].content[0]")


class Waiting(ImageLoader):
    """A loader that never gets its images."""

    def __init__(self) -> None:
        self.asked, self.given_up, self.released = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def load(
        self, refs: Sequence[ImageRef], budget: ByteBudget, owner: Hashable = None
    ) -> AsyncIterator[list[Image]]:
        self.owner = owner
        self.asked.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        yield []


async def test_a_client_that_leaves_ends_the_fetch_of_its_images(start: Start) -> None:
    images = Waiting()
    run = start(exchange=kit.exchange(kit.image_model()), images=images)
    run.push(request_head(), request_body(kit.image_request("https://example.com/cat.png").body))
    await images.asked.wait()
    run.session.lost()
    await asyncio.wait_for(images.given_up.wait(), 5)
    assert run.exchange.report.outcome == "client_gone"


@pytest.mark.parametrize(
    ("headers", "attributes", "owner"),
    [
        ({"x-responses-organization": "acme", "x-responses-key": "key_1"}, {"connection.id": 7}, "acme"),
        ({"x-responses-key": "key_1"}, {"connection.id": 7}, "key_1"),
        ({}, {"connection.id": 7}, 7),
        ({"x-responses-organization": ""}, {"connection.id": 7}, 7),
        ({}, {"source.address": "192.0.2.1:80"}, 0),
        ({}, {}, 0),
    ],
)
async def test_images_are_loaded_on_behalf_of_the_client_or_else_of_its_connection(
    start: Start, headers: dict[str, str], attributes: dict[str, str | int], owner: Hashable
) -> None:
    images = Waiting()
    run = start(exchange=kit.exchange(kit.image_model()), images=images)
    head = request_head(False, **headers)
    if attributes:
        head.attributes["envoy.filters.http.ext_proc"].update(attributes)
    run.push(head, request_body(kit.image_request("https://example.com/cat.png").body))
    await images.asked.wait()
    assert (images.owner, type(images.owner)) == (owner, type(owner))


async def test_an_abort_does_not_wait_for_images(start: Start) -> None:
    images = Waiting()
    run = start(exchange=kit.exchange(kit.image_model()), images=images)
    run.push(request_head(), request_body(kit.image_request("https://example.com/cat.png").body))
    await images.asked.wait()
    run.session.abort(ApiError("node_unavailable", "restarting"))
    assert (await run.envoy.take()).immediate_response.status.code == 503
    await asyncio.wait_for(images.given_up.wait(), 5)
    assert await run.finished() == []
