"""The phases before the upstream is called: the request comes, and its asks are answered one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.events import Answered, Event, RequestComplete, Tick
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.forwarded import trace_id
from sidecar.exchange.load import plan_of
from sidecar.exchange.look_up import ABOUT_ONE, LookUp
from sidecar.exchange.look_up_requests import ABOUT_REQUESTS, LookUpRequests, no_such_request
from sidecar.exchange.phases.generating import Calling
from sidecar.exchange.phases.phase import Context, Phase, PhaseWithFacts, Step
from sidecar.exchange.phases.storing import LookingUp
from sidecar.exchange.reserve import Reserve
from sidecar.exchange.resources import answer_at_once
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.surfaces.endpoints import Operation


class Waiting(Phase):
    """The request is on its way."""

    def take(self, event: Event) -> Step:
        """The request begins to be prepared; what is not about responses or requests is answered at once."""
        if not isinstance(event, RequestComplete):
            return self._take_any(event)
        context = self._context
        context.report.request_id = event.headers.get("x-request-id", "")
        context.report.trace_id = trace_id(event.headers)
        context.report.caller = event.caller
        context.report.timing.head_at = event.head_at
        target = context.surface.target(event.headers)
        if target.operation in ABOUT_ONE:
            ask = LookUp.of(target, event, context.surface)
            return LookingUp(context, ask, event.at), [ask]
        if target.operation in ABOUT_REQUESTS:
            if LookUpRequests not in context.asks:
                raise no_such_request(target.id)
            about = LookUpRequests.of(target, event)
            return LookingUp(context, about, event.at), [about]
        if target.operation not in (Operation.CREATE_RESPONSE, Operation.COMPACT_RESPONSE):
            reply = answer_at_once(target, context.surface, context.catalog, event.caller.organization)
            return self._end(reply.outcome, [reply])
        facts = Facts(context.surface, context.catalog, event, context.entropy)
        return _next_ask(context, facts, context.asks, event.at)


class Preparing(PhaseWithFacts):
    """An ask is under way. ``left`` are those that may follow it."""

    def __init__(
        self, context: Context, facts: Facts, ask: Ask[Any], left: Sequence[type[Ask[Any]]], asked_at: float
    ) -> None:
        super().__init__(context, facts)
        self._ask = ask
        self._left = left
        self._due_at = asked_at + ask.seconds

    @property
    def due_at(self) -> float:
        """When the answer will be overdue."""
        return self._due_at

    def take(self, event: Event) -> Step:
        """With the answer the next ask is made, or after the last one the upstream is called; a reply is the end."""
        match event:
            case Answered(ask, result, at):
                if ask is not self._ask:
                    return self, []
                if isinstance(result, ApiError):
                    raise result
                if isinstance(result, Reply):
                    return self._end(result.outcome, [result])
                self._facts.add(type(ask), result)
                return _next_ask(self._context, self._facts, self._left, at)
            case Tick(at):
                if at >= self._due_at:
                    raise ApiError("capacity_unavailable", "The request could not be prepared in time.")
                return self, []
        return self._take_any(event)


def _next_ask(context: Context, facts: Facts, left: Sequence[type[Ask[Any]]], at: float) -> Step:
    """Make the first of the asks that the request needs; call the upstream where it needs none."""
    for index, kind in enumerate(left):
        ask = kind.needed(facts)
        if ask is not None:
            return Preparing(context, facts, ask, left[index + 1 :], at), [ask]
    plan = plan_of(facts)
    if plan.searches:
        facts.seconds = context.surface.bounds.search_seconds
    live = plan.live(facts.get(FetchImages), context.report, at)
    report, reserved = context.report, facts.get(Reserve)
    if reserved is not None:
        report.delivered.cell = reserved.slot.mark
    report.response_id = plan.ids.response
    report.model, report.stream, report.remedy = plan.model.name, plan.stream, plan.remedy
    report.usage.input_tokens = plan.input_tokens
    report.timing.called_at = at
    return Calling(context, facts, live, at), [live.call]
