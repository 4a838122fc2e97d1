"""The phases with an upstream: it has been called, then it generates."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from sidecar.backends.backend import FinishReason, Piece, Reader
from sidecar.backends.failure import BackendError
from sidecar.backends.triton import errors
from sidecar.exchange.answer import Answer
from sidecar.exchange.asks import Facts, LastAsk
from sidecar.exchange.commands import Command, Finish, SendBody, SendHead
from sidecar.exchange.events import Event, Tick, UpstreamBytes, UpstreamEnd
from sidecar.exchange.phases.phase import Context, PhaseWithFacts, Step
from sidecar.exchange.phases.storing import Storing, whole_answer
from sidecar.exchange.plan import Plan
from sidecar.exchange.report import Report, Timing
from sidecar.exchange.reserve import Reserve
from sidecar.exchange.store import Store
from sidecar.generation.stops import StopStrings
from sidecar.responses.errors import ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.json_text import Json
from sidecar.responses.marks import Counts, mark_of
from sidecar.responses.usage import Usage

KEEP_ALIVE = b": keep-alive\n\n"


class LiveAnswer:
    """An answer that grows: its plan, and whom it comes from and goes to."""

    def __init__(self, plan: Plan, reader: Reader, report: Report) -> None:
        self.plan = plan
        self.reader = reader
        self.writer = EventWriter(plan.ids, plan.response, plan.reasoning, plan.custom_tools)
        self.answer = Answer(
            reader,
            self.writer,
            StopStrings(plan.generation.stop),
            plan.parser(),
            report.usage,
            parallel_calls=plan.parallel_calls,
        )


class _Generating(PhaseWithFacts):
    """What the phases with an upstream have in common: its end, and the end of the answer.

    ``upstream_at`` is when the upstream was last heard of.
    """

    def __init__(self, context: Context, facts: Facts, live: LiveAnswer, upstream_at: float) -> None:
        super().__init__(context, facts)
        self._live = live
        self._upstream_at = upstream_at
        self._silence = context.surface.bounds.silence if live.plan.stream else inf

    def _last_asks(self) -> list[LastAsk]:
        self._note_what_was_read()
        return super()._last_asks()

    def _take_end(self, event: UpstreamEnd) -> Step:
        reader = self._live.reader
        held_back = reader.end(event.whole, event.http_status, event.grpc)
        assert reader.finish_reason is not None, "a reader at its end knows why"
        return self._complete(reader.finish_reason, held_back, event.at)

    def _complete(self, finish_reason: FinishReason, held_back: Piece, at: float) -> Step:
        live, timing = self._live, self._context.report.timing
        if timing.first_token_at is None:
            timing.first_token_at = at
        timing.model_done_at, timing.done_at = self._upstream_at, at
        events = live.answer.close(held_back, finish_reason)
        self._note_what_was_read()
        self._check_form(finish_reason)
        response = self._final_response(finish_reason)
        usage = self._context.report.usage
        self._context.report.delivered.written = mark_of(usage.output_tokens, usage.reasoning_tokens)
        self._facts.response = response
        if live.plan.stream:
            commands = [*self._opening(), SendBody(events + live.writer.finish(response)), Finish()]
        elif (store := Store.needed(self._facts)) is not None:
            return Storing(self._context, self._facts, response, store, at), [store]
        else:
            commands = whole_answer(response, timing, self._limits_told)
        return self._end(response["status"], commands)

    def _opening(self) -> list[Command]:
        """The head of a stream, unless it has been sent."""
        return [SendHead({**_stream_head(self._context.report.timing), **self._limits_told})]

    def _note_what_was_read(self) -> None:
        """What the upstream told replaces what was assumed."""
        report, reader = self._context.report, self._live.reader
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
        report, plan, answer = self._context.report, self._live.plan, self._live.answer
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
        context, plan = self._context, self._live.plan
        timing = context.report.timing
        response = {**plan.response, **self._live.answer.result(finish_reason)}
        if finish_reason == "stop":
            response["completed_at"] = plan.response["created_at"] + int(timing.total)
        told = timing.stream_ms() if plan.stream else timing.whole_ms()
        return {**response, **context.surface.extension(context.catalog.node, told)}


class Calling(_Generating):
    """The upstream has been called and has generated nothing yet."""

    @property
    def due_at(self) -> float:
        """When the upstream will have been silent for too long."""
        return self._upstream_at + min(self._live.plan.model.settings.first_token_timeout, self._silence)

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

    def _checkpoint(self) -> None:
        """What has become known with the first token is kept where it outlives this process."""
        reserved = self._facts.get(Reserve)
        if reserved is not None:
            self._note_what_was_read()
            usage, guided = self._context.report.usage, self._live.plan.guided
            reserved.slot.note(input_tokens=usage.input_tokens, cached_tokens=usage.cached_tokens, guided=guided)

    def _read(self, data: bytes, at: float) -> Step:
        self._upstream_at = at
        answer = self._live.answer
        events = answer.feed(data)
        if not answer.begun:
            if answer.failure is not None:
                raise answer.failure
            return self, []
        report = self._context.report
        report.timing.first_token_at = at
        self._checkpoint()
        commands: list[Command] = []
        if self._live.plan.stream:
            report.delivered.written = answer.mark
            commands = [*self._opening(), SendBody(events)]
        following, more = Answering(self._context, self._facts, self._live, at).go_on(at)
        return following, [*commands, *more]


class Answering(_Generating):
    """The upstream generates; of a stream, the head has been sent."""

    def __init__(self, context: Context, facts: Facts, live: LiveAnswer, upstream_at: float) -> None:
        super().__init__(context, facts, live, upstream_at)
        self.over = False
        """Whether the answer goes no further: the next event ends it."""
        self._answer = live.answer
        self._writer = live.writer
        self._stream = live.plan.stream
        self._delivered = context.report.delivered
        self._sent_at = upstream_at
        self._next_number = live.writer.next_number

    @property
    def due_at(self) -> float:
        """When the upstream will have been silent for too long, or a stream will need a comment."""
        return min(self._silent_at, self._keep_alive_at)

    @property
    def _silent_at(self) -> float:
        return self._upstream_at + min(self._live.plan.model.settings.token_timeout, self._silence)

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
            self._delivered.written = answer.mark
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
            return self._complete("stop", self._live.reader.stop(), at)
        return (self, []) if answer.failure is None else self.fail(answer.failure)

    def fail(self, error: ApiError) -> Step:
        """A stream ends with an ``error`` event; of any other answer nothing has been sent yet."""
        if not self._stream:
            return super().fail(error)
        context, live, writer = self._context, self._live, self._writer
        if isinstance(error, BackendError):
            context.report.backend_error = error
        # Numbers belong to what was sent, not to what was written and thrown away.
        writer.next_number = self._next_number
        events, told = b"", context.surface.in_stream(error)
        if context.surface.settings.failed_event:
            failed = {"status": "failed", "error": {"code": told.failed_code, "message": told.message}}
            written = {"output": writer.cut_output(), "usage": self._usage_written().to_json()}
            events = writer.finish({**live.plan.response, **failed, **written})
        members = context.surface.error_members(told, context.report.request_id)
        return self._end(error.code, [SendBody(events + writer.error(told, members)), Finish()])

    def _usage_written(self) -> Usage:
        """The tokens of what was sent, which are those that count."""
        counts = Counts.of(self._delivered.written)
        return replace(
            self._context.report.usage, output_tokens=counts.output_tokens, reasoning_tokens=counts.reasoning_tokens
        )

    def _tick(self, at: float) -> Step:
        if at >= self._silent_at:
            raise errors.timeout()
        if at >= self._keep_alive_at:
            self._sent_at = at
            return self, [SendBody(KEEP_ALIVE)]
        return self, []

    def _opening(self) -> list[Command]:
        return []


def _stream_head(timing: Timing) -> dict[str, str]:
    return {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "server-timing": f"ttft;dur={timing.ttft_ms:.1f}",
    }
