"""The spans of exchanges, and the context that goes along with calls of models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode

from sidecar.admission.directives import Directives
from sidecar.exchange.asks import Ask, LastAsk
from sidecar.exchange.direct import Direct
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.plan import Prepare
from sidecar.extproc.driver import Done, Performer
from sidecar.extproc.session import NO_TRACE, Session
from sidecar.extproc.wires import WIRES
from sidecar.telemetry.traces.exporting import PatientExporter
from sidecar.telemetry.traces.observer import TraceExchanges
from tests.core import kit
from tests.core.exchange import native_kit as native
from tests.core.extproc.test_native_tunnel import BUSY, HEAD, Envoy
from tests.core.extproc.test_session import (
    TUNNEL_HEAD,
    Clock,
    chunk,
    request_body,
    request_head,
    response_body,
    response_head,
)

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
ENVOYS = f"00-{TRACE}-00000000000000aa-01"


class Traced:
    """A session with the tracer under test; ``spans`` are those that have ended."""

    def __init__(self, exchange: Exchange | None = None, *, content: bool = False, share: float = 1.0) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(share)), shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = TraceExchanges(provider.get_tracer("test"), content=content)
        self.exchange = exchange or kit.exchange()
        self.exchange.report.surface = "bureau" if exchange else "node"
        self.envoy, self.clock = Envoy(), Clock()
        self.performers: dict[type[Ask[Any]] | type[LastAsk], Performer] = {Prepare: lambda ask: Done(ask.plan())}

    def ask(self, headers: dict[str, str], body: bytes, trace: dict[str, str] | None = None) -> None:
        """The request comes at 100 s, and the head of the tunnel with it."""
        self.session = Session(
            self.envoy,
            self.exchange,
            WIRES["tunnel"](),
            self.performers,
            (self.tracing,),
            self.clock,
            self.tracing,
            trace or NO_TRACE,
        )
        for message in (request_head(False, **headers), request_body(body), response_head()):
            self.session.receive(message.SerializeToString())

    def answer(self, at: float, *data: bytes) -> None:
        """So much of the upstream's answer comes."""
        self.clock.now = at
        for piece in data:
            self.session.receive(response_body(piece).SerializeToString())

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def span(self, kind: SpanKind) -> ReadableSpan:
        (only,) = [span for span in self.spans if span.kind is kind]
        return only

    def sent(self) -> list[str]:
        """The parents that calls of models were sent."""
        lines = self.envoy.written().split(b"\r\n")
        return [line.partition(b": ")[2].decode() for line in lines if line.lower().startswith(b"traceparent:")]


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def traceparent(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"


def spoken(traced: Traced, words: str = "abc") -> None:
    traced.answer(101.0, TUNNEL_HEAD, chunk(kit.text(words)))
    traced.answer(102.0, chunk(kit.final()), b"0\r\n\r\n")


def ns(seconds: float) -> int:
    """The clock's time, 100 s of which are 1,800,000,000 of Unix."""
    return int((1_800_000_000.0 - 100.0 + seconds) * 1e9)


def test_a_request_is_a_span_whose_child_goes_along_with_the_call() -> None:
    traced = Traced()
    traced.ask({"traceparent": PARENT}, kit.request(temperature=0.5).body)
    spoken(traced)
    request, call = traced.span(SpanKind.SERVER), traced.span(SpanKind.CLIENT)
    assert request.name == "POST /v1/infer/responses"
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert traced.exchange.report.trace_id == TRACE
    assert (request.start_time, request.end_time) == (ns(100.0), ns(102.0))
    assert told(request) == {
        "http.request.method": "POST",
        "http.route": "/v1/infer/responses",
        "http.response.status_code": 200,
        "responses.request_id": "r-1",
        "responses.surface": "node",
        "responses.outcome": "completed",
    }
    assert call.name == "chat letters"
    assert call.parent == request.context
    assert traced.sent() == [traceparent(call)]
    response_id = told(call).pop("gen_ai.response.id")
    assert response_id.startswith("resp_")
    assert told(call) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "triton",
        "gen_ai.request.model": "letters",
        "gen_ai.request.stream": False,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.id": response_id,
        "gen_ai.response.finish_reasons": ("completed",),
        "gen_ai.response.time_to_first_chunk": 1.0,
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.reasoning.output_tokens": 0,
    }
    assert [span.name for span in traced.spans if span.kind is SpanKind.INTERNAL] == ["Prepare"]
    assert not vars(traced.tracing)["_under_way"]


def test_envoys_own_part_of_the_trace_is_the_parent() -> None:
    traced = Traced()
    state = {"traceparent": PARENT, "tracestate": "clients=state"}
    traced.ask(state, kit.request().body, {"traceparent": ENVOYS})
    spoken(traced)
    parent = traced.span(SpanKind.SERVER).parent
    assert parent is not None
    assert parent.span_id == 0xAA
    assert b"clients=state" not in traced.envoy.written()


def test_a_trace_begins_where_there_is_none() -> None:
    traced = Traced()
    traced.ask({}, kit.request().body)
    spoken(traced)
    assert traced.span(SpanKind.SERVER).parent is None
    assert traced.sent() == [traceparent(traced.span(SpanKind.CLIENT))]
    assert traced.exchange.report.trace_id == traced.sent()[0].split("-")[1]


@pytest.mark.parametrize(("headers", "share"), [({"traceparent": PARENT[:-1] + "0"}, 1.0), ({}, 0.0)])
def test_what_is_not_sampled_is_passed_on_as_such(headers: dict[str, str], share: float) -> None:
    traced = Traced(share=share)
    traced.ask(headers, kit.request().body)
    spoken(traced)
    assert not traced.spans
    (parent,) = traced.sent()
    assert not int(parent[-2:], 16) & 1
    assert parent != headers.get("traceparent")


def test_a_refused_request_has_no_call_and_is_no_failure_of_the_server() -> None:
    traced = Traced()
    traced.ask({}, kit.request(model="nobody-knows-it").body)
    request = traced.span(SpanKind.SERVER)
    assert told(request)["error.type"] == "model_not_available"
    assert told(request)["http.response.status_code"] == 404
    assert request.status.status_code is StatusCode.UNSET
    assert not any(span.kind is SpanKind.CLIENT for span in traced.spans)
    assert "nobody-knows-it" not in str([told(span) for span in traced.spans])


def test_a_model_that_fails_fails_the_call_and_the_request() -> None:
    traced = Traced()
    traced.ask({}, kit.request(stream=True).body)
    traced.answer(101.0, TUNNEL_HEAD, chunk(kit.text("a")), chunk(kit.failure("secret words")))
    for span in (traced.span(SpanKind.SERVER), traced.span(SpanKind.CLIENT)):
        assert span.status.status_code is StatusCode.ERROR
        assert told(span)["error.type"] == traced.exchange.report.outcome
        assert "secret words" not in span.to_json()
    assert told(traced.span(SpanKind.SERVER))["http.response.status_code"] == 200


def test_a_client_that_leaves_fails_nothing() -> None:
    traced = Traced()
    traced.ask({}, kit.request(stream=True).body)
    traced.answer(101.0, TUNNEL_HEAD, chunk(kit.text("a")))
    traced.clock.now = 103.0
    traced.session.lost()
    request = traced.span(SpanKind.SERVER)
    assert told(request)["responses.outcome"] == "client_gone"
    assert request.status.status_code is StatusCode.UNSET
    assert request.end_time == ns(103.0)


def test_each_attempt_is_a_call_with_a_context_of_its_own() -> None:
    traced = Traced(native.exchange())
    traced.ask({":path": "/v1/responses", "traceparent": PARENT}, native.request(stream=True).body)
    traced.answer(101.0, BUSY)
    first, second = traced.sent()
    (failed,) = traced.spans[1:]
    assert (first, second) == (traceparent(failed), traced.sent()[1])
    assert told(failed)["gen_ai.provider.name"] == "up0"
    assert told(failed)["error.type"] == "infer_backend_unavailable"
    assert (failed.start_time, failed.end_time) == (ns(100.0), ns(101.0))
    traced.answer(102.0, HEAD)
    traced.session.lost()
    again = next(span for span in traced.spans if span.context is not None and traceparent(span) == second)
    assert told(again)["gen_ai.provider.name"] == "up1"
    assert "error.type" not in told(again)


def test_nothing_that_is_said_is_told_unless_it_is_asked_for() -> None:
    for stream in (False, True):
        traced = Traced()
        traced.ask({}, kit.request(input="a question", instructions="be brief", stream=stream).body)
        spoken(traced, "answered")
        all_told = "".join(span.to_json() for span in traced.spans)
        assert not any(words in all_told for words in ("a question", "be brief", "answered"))


@pytest.mark.parametrize("stream", [False, True])
def test_content_is_told_where_it_is_asked_for(stream: bool) -> None:
    traced = Traced(content=True)
    traced.ask({}, kit.request(input="a question", instructions="be brief", stream=stream).body)
    spoken(traced, "answered")
    call = told(traced.span(SpanKind.CLIENT))
    content = {name: json.loads(call[name]) for name in call if name.endswith(("messages", "instructions"))}
    assert content == {
        "gen_ai.system_instructions": [{"type": "text", "content": "be brief"}],
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "a question"}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "answered"}]}],
    }


def test_content_is_not_told_where_nothing_may_be_kept() -> None:
    traced = Traced(native.exchange(asks=(Direct, Prepare)), content=True)
    traced.performers[Direct] = lambda _ask: Done(Directives(retains_nothing=True))
    traced.ask({":path": "/v1/responses"}, native.request(input="a question").body)
    traced.session.lost()
    assert "a question" not in "".join(span.to_json() for span in traced.spans)
    assert told(traced.span(SpanKind.CLIENT))["gen_ai.request.model"] == "gpt"


class Collector(SpanExporter):
    """Fails as long as it is told to."""

    def __init__(self) -> None:
        self.works = False
        self.asked = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked += 1
        return SpanExportResult.SUCCESS if self.works else SpanExportResult.FAILURE


@pytest.fixture
def times() -> Iterator[list[float]]:
    yield [0.0]


def test_a_dead_collector_is_told_of_once_and_left_alone(times: list[float], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    collector = Collector()
    exporter = PatientExporter(collector, "http://collector/v1/traces", lambda: times[0])
    for _ in range(10):
        exporter.export([])
    assert collector.asked == 1
    times[0] += 31
    exporter.export([])
    exporter.export([])
    assert collector.asked == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    times[0], collector.works = times[0] + 31, True
    assert exporter.export([]) is SpanExportResult.SUCCESS
    assert exporter.export([]) is SpanExportResult.SUCCESS
    assert collector.asked == 4
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
