"""The phases of a request that waits for the store: its answer is whole, or it was only about one that is stored."""

from __future__ import annotations

from collections.abc import Mapping

from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.commands import Command, Finish, SendBody, SendHead
from sidecar.exchange.events import Answered, Event, Tick
from sidecar.exchange.phases.phase import Context, Phase, PhaseWithFacts, Step
from sidecar.exchange.report import Timing
from sidecar.exchange.store import Store
from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json, json_bytes
from sidecar.responses.reply import Reply


class Storing(PhaseWithFacts):
    """The answer is whole, and is given to the client once it is known whether it is stored."""

    def __init__(self, context: Context, facts: Facts, response: Json, ask: Store, at: float) -> None:
        super().__init__(context, facts)
        self._response = response
        self._ask = ask
        self._due_at = at + ask.seconds

    @property
    def due_at(self) -> float:
        """When it is given to the client as one that is not stored."""
        return self._due_at

    def take(self, event: Event) -> Step:
        """The answer is given."""
        match event:
            case Answered(ask, result, _):
                return self._give(stored=result is True) if ask is self._ask else (self, [])
            case Tick(at):
                return self._give(stored=False) if at >= self._due_at else (self, [])
        return self._take_any(event)

    def _give(self, *, stored: bool) -> Step:
        response = {**self._response, "store": stored}
        return self._end(response["status"], whole_answer(response, self._context.report.timing, self._limits_told))


class LookingUp(Phase):
    """A response that is stored is looked up, or what became of requests."""

    def __init__(self, context: Context, ask: Ask[Reply], at: float) -> None:
        super().__init__(context)
        self._ask = ask
        self._due_at = at + ask.seconds

    @property
    def due_at(self) -> float:
        """When the answer will be overdue."""
        return self._due_at

    def take(self, event: Event) -> Step:
        """What was found is the answer."""
        match event:
            case Answered(ask, result, _):
                if ask is not self._ask:
                    return self, []
                if isinstance(result, ApiError):
                    raise result
                assert isinstance(result, Reply)
                return self._end(result.outcome, [result])
            case Tick(at):
                if at >= self._due_at:
                    raise ApiError("node_unavailable", "The store does not answer; try again.")
                return self, []
        return self._take_any(event)


def whole_answer(response: Json, timing: Timing, headers: Mapping[str, str]) -> list[Command]:
    """A response that is no stream, with further ``headers``."""
    body = json_bytes(response)
    head = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "server-timing": f"ttft;dur={timing.ttft_ms:.1f}, total;dur={timing.total * 1000:.1f}",
    }
    return [SendHead({**head, **headers}), SendBody(body), Finish()]
