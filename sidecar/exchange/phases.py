"""The phases of an exchange: each is an object that holds all it needs, and says what an event leads to.

:meth:`Phase.take` answers an event with the phase that follows (often itself) and what is to be done; which events a
phase heeds and what may follow stands in :mod:`sidecar.exchange.transitions`. A streamed answer's head is held until
the first generated token, a non-streamed one's until the last: a failure before that is a plain HTTP error. After it, a
stream ends with one ``error`` event.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from sidecar.backends.backend import FinishReason, Piece, Reader
from sidecar.backends.triton import errors
from sidecar.backends.triton.errors import BackendError
from sidecar.exchange.answer import Answer
from sidecar.exchange.asks import Ask, Facts, LastAsk
from sidecar.exchange.catalog import Catalog
from sidecar.exchange.commands import Command, Finish, SendBody, SendHead
from sidecar.exchange.events import (
    Abort,
    Answered,
    ClientGone,
    Event,
    RequestComplete,
    Tick,
    UpstreamBytes,
    UpstreamEnd,
)
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.plan import Plan, Prepare
from sidecar.exchange.report import Report, Timing
from sidecar.exchange.resources import answer_at_once
from sidecar.generation.stops import StopStrings
from sidecar.responses.errors import ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.json_text import Json, json_bytes
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.surface import Surface

KEEP_ALIVE = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True)
class Context:
    """What stays the same through all phases of one exchange, and the report that they fill in."""

    surface: Surface
    catalog: Catalog
    entropy: bytes
    asks: Sequence[type[Ask[Any]]]
    last_asks: Sequence[type[LastAsk]]
    report: Report


class Phase(ABC):
    """Where an exchange is. ``due_at`` is when a ``Tick`` will change something; infinity while none will."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def due_at(self) -> float:
        """On the clock of the events, in seconds."""
        return inf

    @abstractmethod
    def take(self, event: Event) -> Step:
        """What ``event`` leads to.

        Raises:
            ApiError: to :meth:`fail`.
        """

    def fail(self, error: ApiError) -> Step:
        """The exchange ends with ``error``, as a plain HTTP error: nothing has been sent yet."""
        if isinstance(error, BackendError):
            self._context.report.backend_error = error
        report = self._context.report
        return self._end(error.code, [self._context.surface.error_reply(error, report.request_id)])

    def _take_any(self, event: Event) -> Step:
        """What the events lead to that can come at any time."""
        match event:
            case Abort(error):
                raise error
            case ClientGone():
                return self._end(self._context.report.outcome, [])
        raise AssertionError(f"{type(self).__name__} does not heed {type(event).__name__}")

    def _end(self, outcome: str, commands: Sequence[Command]) -> Step:
        self._context.report.outcome = outcome
        return Ended(self._context), [*commands, *self._last_asks()]

    def _last_asks(self) -> list[LastAsk]:
        """What is still to be done: nothing where nothing has been asked for."""
        return []


Step = tuple[Phase, list[Command]]
"""The phase that follows, and what is to be done."""


class Waiting(Phase):
    """The request is on its way."""

    def take(self, event: Event) -> Step:
        """The request begins to be prepared; all but a new response is answered at once."""
        if not isinstance(event, RequestComplete):
            return self._take_any(event)
        context = self._context
        context.report.request_id = event.headers.get("x-request-id", "")
        context.report.timing.head_at = event.head_at
        target = context.surface.target(event.headers)
        if target.operation is not Operation.CREATE_RESPONSE:
            reply = answer_at_once(target, context.surface, context.catalog)
            return self._end(reply.outcome, [reply])
        facts = Facts(context.surface, context.catalog, event, context.entropy)
        return _next_ask(context, facts, context.asks, event.at)


class Preparing(Phase):
    """An ask is under way. ``left`` are those that may follow it."""

    def __init__(
        self, context: Context, facts: Facts, ask: Ask[Any], left: Sequence[type[Ask[Any]]], asked_at: float
    ) -> None:
        super().__init__(context)
        self._facts = facts
        self._ask = ask
        self._left = left
        self._due_at = asked_at + ask.seconds

    @property
    def due_at(self) -> float:
        """When the answer will be overdue."""
        return self._due_at

    def take(self, event: Event) -> Step:
        """With the answer the next ask is made, or after the last one the upstream is called."""
        match event:
            case Answered(ask, result, at):
                if ask is not self._ask:
                    return self, []
                if isinstance(result, ApiError):
                    raise result
                self._facts.add(type(ask), result)
                return _next_ask(self._context, self._facts, self._left, at)
            case Tick(at):
                if at >= self._due_at:
                    raise ApiError("capacity_unavailable", "The request could not be prepared in time.")
                return self, []
        return self._take_any(event)

    def _last_asks(self) -> list[LastAsk]:
        return _last_asks(self._context, self._facts)


def _next_ask(context: Context, facts: Facts, left: Sequence[type[Ask[Any]]], at: float) -> Step:
    """Make the first of the asks that the request needs; call the upstream where it needs none."""
    for index, kind in enumerate(left):
        ask = kind.needed(facts)
        if ask is not None:
            return Preparing(context, facts, ask, left[index + 1 :], at), [ask]
    plan = facts[Prepare]
    call = plan.call(plan.body or facts[FetchImages])
    report = context.report
    report.model, report.stream, report.remedy = plan.model.name, plan.stream, plan.contract.remedy
    report.usage.input_tokens = len(plan.generation.prompt_ids)
    return Calling(context, facts, _Generation(plan, call.reader, report), at), [call]


def _last_asks(context: Context, facts: Facts) -> list[LastAsk]:
    asks = (kind.needed(facts, context.report) for kind in context.last_asks)
    return [ask for ask in asks if ask is not None]


class _Generation:
    """What is being generated: its plan, the answer that grows, and whom they come from and go to."""

    def __init__(self, plan: Plan, reader: Reader, report: Report) -> None:
        self.plan = plan
        self.reader = reader
        self.writer = EventWriter(plan.ids, plan.response, plan.reasoning)
        self.answer = Answer(
            reader,
            self.writer,
            StopStrings(plan.generation.stop),
            plan.parser,
            report.usage,
            parallel_calls=plan.parallel_calls,
        )


class _Generating(Phase):
    """What the phases with an upstream have in common: its end, and the end of the answer.

    ``upstream_at`` is when the upstream was last heard of.
    """

    def __init__(self, context: Context, facts: Facts, generation: _Generation, upstream_at: float) -> None:
        super().__init__(context)
        self._facts = facts
        self._generation = generation
        self._upstream_at = upstream_at

    def _last_asks(self) -> list[LastAsk]:
        self._note_what_was_read()
        return _last_asks(self._context, self._facts)

    def _take_end(self, event: UpstreamEnd) -> Step:
        reader = self._generation.reader
        held_back = reader.end(event.whole, event.http_status, event.grpc)
        assert reader.finish_reason is not None, "a reader at its end knows why"
        return self._complete(reader.finish_reason, held_back, event.at)

    def _complete(self, finish_reason: FinishReason, held_back: Piece, at: float) -> Step:
        generation, timing = self._generation, self._context.report.timing
        if timing.first_token_at is None:
            timing.first_token_at = at
        timing.model_done_at, timing.done_at = self._upstream_at, at
        events = generation.answer.close(held_back, finish_reason)
        self._note_what_was_read()
        self._check_form(finish_reason)
        response = self._final_response(finish_reason)
        if generation.plan.stream:
            commands = [*self._opening(), SendBody(events + generation.writer.finish(response))]
        else:
            body = json_bytes(response)
            commands = [SendHead(_json_head(timing, len(body))), SendBody(body)]
        return self._end(response["status"], [*commands, Finish()])

    def _opening(self) -> list[Command]:
        """The head of a stream, unless it has been sent."""
        return [SendHead(_stream_head(self._context.report.timing))]

    def _note_what_was_read(self) -> None:
        """What the upstream told replaces what was assumed."""
        report, reader = self._context.report, self._generation.reader
        usage = report.usage
        usage.cached_tokens = reader.cached_tokens
        if reader.input_tokens is not None:
            usage.input_tokens = reader.input_tokens
        report.counted = reader.counted and usage.output_tokens > 0
        report.broken_characters = reader.broken_characters

    def _check_form(self, finish_reason: FinishReason) -> None:
        """Look whether a whole answer is what was demanded; no contract promises that guides are kept to.

        Raises:
            ApiError: it is not, and nothing of it has been sent yet.
        """
        if finish_reason != "stop":
            return
        report, plan, answer = self._context.report, self._generation.plan, self._generation.answer
        guidance, calls, text = plan.guidance, answer.calls, answer.text
        report.missed_call = guidance.demands_call and not calls
        verdicts = [guidance.check_arguments(name, arguments) for name, arguments in calls]
        fits_schema = True if calls else guidance.check_text(text)
        report.broke_schema = fits_schema is False
        report.broken_arguments = verdicts.count(False)
        report.unchecked = None in (*verdicts, fits_schema)
        if plan.stream or not (report.missed_call or report.broke_schema):
            return
        fault = "did not make the call that was demanded" if report.missed_call else "did not keep to the format"
        raise ApiError("infer_backend_unavailable", f"The model {fault}.", retry=False)

    def _final_response(self, finish_reason: FinishReason) -> Json:
        context, plan = self._context, self._generation.plan
        timing = context.report.timing
        response = {**plan.response, **self._generation.answer.result(finish_reason)}
        if finish_reason == "stop":
            response["completed_at"] = plan.response["created_at"] + int(timing.total)
        told = timing.stream_ms() if plan.stream else timing.whole_ms()
        return {**response, **context.surface.extension(context.catalog.node, told)}


class Calling(_Generating):
    """The upstream has been called and has generated nothing yet."""

    @property
    def due_at(self) -> float:
        """When the upstream will have been silent for too long."""
        return self._upstream_at + self._generation.plan.model.settings.first_token_timeout

    def take(self, event: Event) -> Step:
        """With the first token the answer begins."""
        match event:
            case UpstreamBytes(data, at):
                return self._read(data, at)
            case UpstreamEnd():
                return self._take_end(event)
            case Tick(at):
                if at >= self.due_at:
                    raise errors.timeout()
                return self, []
        return self._take_any(event)

    def _read(self, data: bytes, at: float) -> Step:
        self._upstream_at = at
        answer = self._generation.answer
        events = answer.feed(data)
        if not answer.begun:
            if answer.failure is not None:
                raise answer.failure
            return self, []
        self._context.report.timing.first_token_at = at
        commands = [*self._opening(), SendBody(events)] if self._generation.plan.stream else []
        following, more = Answering(self._context, self._facts, self._generation, at).go_on(at)
        return following, [*commands, *more]


class Answering(_Generating):
    """The upstream generates; of a stream, the head has been sent."""

    def __init__(self, context: Context, facts: Facts, generation: _Generation, upstream_at: float) -> None:
        super().__init__(context, facts, generation, upstream_at)
        self.over = False
        """Whether the answer goes no further: the next event ends it."""
        self._answer = generation.answer
        self._writer = generation.writer
        self._stream = generation.plan.stream
        self._sent_at = upstream_at
        self._next_number = generation.writer.next_number

    @property
    def due_at(self) -> float:
        """When the upstream will have been silent for too long, or a stream will need a comment."""
        return min(self._silent_at, self._keep_alive_at)

    @property
    def _silent_at(self) -> float:
        return self._upstream_at + self._generation.plan.model.settings.token_timeout

    @property
    def _keep_alive_at(self) -> float:
        return self._sent_at + self._context.catalog.keep_alive if self._stream else inf

    def upstream(self, data: bytes, at: float) -> bytes:
        """The events that ``data`` completes, to be sent. This is the per-token path."""
        self._upstream_at = at
        answer = self._answer
        events = answer.feed(data)
        self.over = answer.stopped or answer.failure is not None
        if not self._stream:
            return b""
        if events:
            self._sent_at = at
            self._next_number = self._writer.next_number
        return events

    def take(self, event: Event) -> Step:
        """The answer goes on, to its end."""
        match event:
            case UpstreamBytes(data, at):
                events = self.upstream(data, at)
                following, commands = self.go_on(at)
                return following, [SendBody(events), *commands] if events else commands
            case UpstreamEnd():
                return self._take_end(event)
            case Tick(at):
                return self._tick(at)
        return self._take_any(event)

    def go_on(self, at: float) -> Step:
        """Go on, unless the answer has stopped or failed, although the upstream has not ended."""
        answer = self._answer
        if answer.stopped:
            return self._complete("stop", self._generation.reader.stop(), at)
        return (self, []) if answer.failure is None else self.fail(answer.failure)

    def fail(self, error: ApiError) -> Step:
        """A stream ends with an ``error`` event; of any other answer nothing has been sent yet."""
        if not self._stream:
            return super().fail(error)
        context, generation, writer = self._context, self._generation, self._writer
        if isinstance(error, BackendError):
            context.report.backend_error = error
        # Numbers belong to what was sent, not to what was written and thrown away.
        writer.next_number = self._next_number
        events = b""
        if context.surface.settings.failed_event:
            failed = {"status": "failed", "error": {"code": error.failed_code, "message": error.message}}
            told = {"output": writer.cut_output(), "usage": context.report.usage.to_json()}
            events = writer.finish({**generation.plan.response, **failed, **told})
        members = context.surface.error_members(error, context.report.request_id)
        return self._end(error.code, [SendBody(events + writer.error(error, members)), Finish()])

    def _tick(self, at: float) -> Step:
        if at >= self._silent_at:
            raise errors.timeout()
        if at >= self._keep_alive_at:
            self._sent_at = at
            return self, [SendBody(KEEP_ALIVE)]
        return self, []

    def _opening(self) -> list[Command]:
        return []


class Ended(Phase):
    """The exchange is over; nothing changes any more."""

    def take(self, event: Event) -> Step:
        """Nothing is heeded."""
        return self._take_any(event)


def _stream_head(timing: Timing) -> dict[str, str]:
    return {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "server-timing": f"ttft;dur={timing.ttft_ms:.1f}",
    }


def _json_head(timing: Timing, length: int) -> dict[str, str]:
    return {
        "content-type": "application/json",
        "content-length": str(length),
        "server-timing": f"ttft;dur={timing.ttft_ms:.1f}, total;dur={timing.total * 1000:.1f}",
    }
