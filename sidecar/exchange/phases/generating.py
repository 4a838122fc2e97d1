"""The phases with an upstream: it has been called, then it generates."""

from __future__ import annotations

from math import inf

from sidecar.backends.failure import BackendError
from sidecar.exchange.asks import Facts, LastAsk
from sidecar.exchange.commands import Command, Finish, SendBody, SendHead
from sidecar.exchange.events import Event, Tick, UpstreamBytes, UpstreamEnd, UpstreamHead
from sidecar.exchange.live import LiveAnswer
from sidecar.exchange.phases.phase import Context, PhaseWithFacts, Step
from sidecar.exchange.phases.storing import Storing, whole_answer
from sidecar.exchange.report import Timing
from sidecar.exchange.reserve import Reserve
from sidecar.exchange.store import Store
from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json
from sidecar.responses.marks import mark_of

KEEP_ALIVE = b": keep-alive\n\n"


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
        self._live.note()
        return super()._last_asks()

    def _complete(self, end: UpstreamEnd | None, at: float) -> Step:
        """The answer is whole; without ``end`` the upstream goes on."""
        live, timing = self._live, self._context.report.timing
        events = live.close(end)
        if timing.first_token_at is None:
            timing.first_token_at = at
        timing.model_done_at, timing.done_at = self._upstream_at, at
        live.note()
        live.check_form()
        response = self._final_response()
        usage = self._context.report.usage
        self._context.report.delivered.written = mark_of(usage.output_tokens, usage.reasoning_tokens)
        self._facts.response = response
        if live.plan.stream:
            commands = [*self._opening(), SendBody(events + live.finish(response)), Finish()]
        elif (store := Store.needed(self._facts)) is not None:
            return Storing(self._context, self._facts, response, store, at), [store]
        else:
            commands = whole_answer(response, timing, self._limits_told)
        # A compaction that was asked for as such has no status: it is whole.
        return self._end(response.get("status", "completed"), commands)

    def _opening(self) -> list[Command]:
        """The head of a stream, unless it has been sent."""
        return [SendHead({**_stream_head(self._context.report.timing), **self._limits_told})]

    def _final_response(self) -> Json:
        context, timing = self._context, self._context.report.timing
        told = timing.stream_ms() if self._live.plan.stream else timing.whole_ms()
        return {**self._live.response(), **context.surface.extension(context.catalog.node, told, self._live.plan.route)}


class Calling(_Generating):
    """The upstream has been called and has generated nothing yet."""

    @property
    def due_at(self) -> float:
        """When the upstream will have been silent for too long."""
        return self._upstream_at + min(self._live.first_token_seconds, self._silence)

    def take(self, event: Event) -> Step:
        """With the first token the answer begins."""
        match event:
            case UpstreamBytes(data, at):
                return self._read(data, at)
            case UpstreamHead():
                self._live.head(event)
                return self, []
            case UpstreamEnd(at=at):
                if (call := self._live.again(event)) is not None:
                    self._upstream_at = at
                    return self, [call]
                return self._complete(event, at)
            case Tick(at):
                if at >= self.due_at:
                    raise self._live.timeout()
                return self, []
        return self._take_any(event)

    def _checkpoint(self) -> None:
        """What has become known with the first token is kept where it outlives this process."""
        reserved = self._facts.get(Reserve)
        if reserved is not None:
            self._live.note()
            usage, guided = self._context.report.usage, self._live.plan.guided
            reserved.slot.note(input_tokens=usage.input_tokens, cached_tokens=usage.cached_tokens, guided=guided)

    def _read(self, data: bytes, at: float) -> Step:
        answer = self._live.answer
        events = answer.feed(data)
        if self._live.comments_count:
            self._upstream_at = at
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
        self._comments_count = live.comments_count
        self._stream = live.plan.stream
        self._delivered = context.report.delivered
        self._sent_at = upstream_at

    @property
    def heard_at(self) -> float:
        """With its last token."""
        return self._upstream_at

    @property
    def due_at(self) -> float:
        """When the upstream will have been silent for too long, or a stream will need a comment."""
        return min(self._silent_at, self._keep_alive_at)

    @property
    def _silent_at(self) -> float:
        return self._upstream_at + min(self._live.token_seconds, self._silence)

    @property
    def _keep_alive_at(self) -> float:
        return self._sent_at + self._context.catalog.keep_alive if self._stream else inf

    def upstream(self, data: bytes, at: float) -> bytes:
        """The events that ``data`` completes, to be sent. This is the per-token path."""
        answer = self._answer
        events = answer.feed(data)
        if events or self._comments_count:
            self._upstream_at = at
        self.over = answer.stopped or answer.failure is not None
        if not self._stream:
            return b""
        if events:
            self._sent_at = at
            self._delivered.written = answer.mark
        return events

    def take(self, event: Event) -> Step:
        """The answer goes on, to its end."""
        match event:
            case UpstreamBytes(data, at):
                events = self.upstream(data, at)
                following, commands = self.go_on(at)
                return following, [SendBody(events), *commands] if events else commands
            case UpstreamEnd(at=at):
                return self._complete(event, at)
            case Tick(at):
                return self._tick(at)
        return self._take_any(event)

    def go_on(self, at: float) -> Step:
        """Go on, unless the answer has stopped or failed, although the upstream has not ended."""
        answer = self._answer
        if answer.stopped:
            return self._complete(None, at)
        return (self, []) if answer.failure is None else self.fail(answer.failure)

    def fail(self, error: ApiError) -> Step:
        """A stream ends with an ``error`` event; of any other answer nothing has been sent yet."""
        if not self._stream:
            return super().fail(error)
        context = self._context
        if isinstance(error, BackendError):
            context.report.backend_error = error
        told = context.surface.in_stream(error)
        members = context.surface.error_members(told, context.report.request_id)
        events = self._live.fail(told, members, failed_event=context.surface.settings.failed_event)
        return self._end(error.code, [SendBody(events), Finish()])

    def _tick(self, at: float) -> Step:
        if at >= self._silent_at:
            raise self._live.timeout()
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
