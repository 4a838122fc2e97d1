"""The spans of one request."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from sidecar.exchange.asks import Ask
from sidecar.exchange.commands import Command, SendHead
from sidecar.exchange.events import RequestComplete
from sidecar.exchange.forwarded import forwarded_headers
from sidecar.exchange.planned import Plan
from sidecar.exchange.report import Report
from sidecar.responses.reply import Reply
from sidecar.telemetry.traces import attributes, content

_WELL = (None, "completed", "incomplete", "ok", "client_gone")
_propagator = TraceContextTextMapPropagator()


class Spans:
    """They begin with the whole ``request``; times are those of the events, in seconds.

    ``content`` is whether they tell what is said.
    """

    def __init__(self, tracer: Tracer, report: Report, request: RequestComplete, *, content: bool) -> None:
        self._tracer = tracer
        self._epoch = request.unix_time - request.head_at
        self._body = request.body if content else None
        self._plan: attributes.Attributes = {}
        self._status: int | None = None
        self._step: Span | None = None
        self._call: Span | None = None
        path = attributes.route(report.surface, request.headers)
        self._request = tracer.start_span(
            " ".join(filter(None, (request.headers.get(":method", ""), path))),
            _propagator.extract(forwarded_headers(request.headers)),
            SpanKind.SERVER,
            attributes.of_request(report, request.headers, path),
            start_time=self._unix_ns(request.head_at),
        )
        self._context = set_span_in_context(self._request)
        report.trace_id = format(self._request.get_span_context().trace_id, "032x")

    def asked(self, ask: Ask[Any], at: float) -> None:
        """A step begins; there is one at a time."""
        if self._request.is_recording():
            self._step = self._tracer.start_span(type(ask).__name__, self._context, start_time=self._unix_ns(at))

    def answered(self, at: float) -> None:
        """The step has ended."""
        if self._step is not None:
            self._step.end(self._unix_ns(at))
            self._step = None

    def tell_nothing_said(self) -> None:
        """What is said is to be kept nowhere."""
        self._body = None

    def planned(self, plan: Plan) -> None:
        """It is known what is to be asked of which model."""
        if self._request.is_recording():
            self._plan = attributes.of_plan(plan)

    def called(self, report: Report, at: float) -> None:
        """A model is called; an earlier call has failed."""
        if self._call is not None:
            _end(self._call, report.attempts[-2].outcome, self._unix_ns(at))
        self._call = self._tracer.start_span(
            f"{attributes.OPERATION} {report.model}",
            self._context,
            SpanKind.CLIENT,
            {**self._plan, "gen_ai.provider.name": report.attempts[-1].route},
            start_time=self._unix_ns(at),
        )
        if self._body is not None:
            self._call.set_attributes(content.of_request(self._body))

    def context_of_call(self) -> dict[str, str]:
        """The headers by which whoever is called goes on with the trace."""
        headers: dict[str, str] = {}
        if self._call is not None:
            _propagator.inject(headers, set_span_in_context(self._call))
        return headers

    def over(self, report: Report, commands: Sequence[Command]) -> None:
        """The request is over; ``commands`` are the last ones."""
        end = self._unix_ns(report.timing.done_at or report.timing.head_at)
        self.answered(report.timing.done_at or report.timing.head_at)
        if self._call is not None:
            self._call.set_attributes(attributes.of_answer(report))
            if self._body is not None:
                self._call.set_attributes(content.of_answer(commands))
            _end(self._call, report.attempts[-1].outcome or report.outcome, end)
        if self._status is not None:
            self._request.set_attribute("http.response.status_code", self._status)
        self._request.set_attribute("responses.outcome", report.outcome)
        # By the conventions for HTTP, what the server refuses is no failure of it.
        refused = self._status is not None and HTTPStatus.BAD_REQUEST <= self._status < HTTPStatus.INTERNAL_SERVER_ERROR
        _end(self._request, report.outcome, end, fails=not refused)

    def note_status(self, commands: Sequence[Command]) -> None:
        """The head of the answer may be among ``commands``."""
        for command in commands:
            if isinstance(command, SendHead):
                self._status = HTTPStatus.OK
            elif isinstance(command, Reply):
                self._status = command.status

    def _unix_ns(self, at: float) -> int:
        return int((self._epoch + at) * 1e9)


def _end(span: Span, outcome: str | None, at: int, *, fails: bool = True) -> None:
    """End ``span``; one whose outcome is an error's code says so, and has failed unless the fault is the client's."""
    if outcome not in _WELL:
        span.set_attribute("error.type", outcome)
        if fails:
            span.set_status(Status(StatusCode.ERROR))
    span.end(at)
