"""What a phase is, what all phases of an exchange share, and the last of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from sidecar.backends.failure import BackendError
from sidecar.exchange.asks import Ask, Facts, LastAsk
from sidecar.exchange.catalog import Catalog
from sidecar.exchange.commands import Command
from sidecar.exchange.events import Abort, ClientGone, Event
from sidecar.exchange.report import Report
from sidecar.exchange.reserve import Reserve
from sidecar.responses.errors import ApiError
from sidecar.surfaces.surface import Surface


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
    """Where an exchange is. ``due_at`` is when a ``Tick`` will change something; infinity while none will.

    ``deadline_at`` is when the exchange fails, whatever it waits for.
    """

    deadline_at = inf

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def heard_at(self) -> float:
        """When the upstream was last heard of in an answer that it has begun; minus infinity where there is none."""
        return -inf

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


class PhaseWithFacts(Phase):
    """A phase that knows its request: what is to be done when the exchange is over depends on that."""

    def __init__(self, context: Context, facts: Facts) -> None:
        super().__init__(context)
        self._facts = facts
        self.deadline_at = facts.request.head_at + facts.seconds

    def fail(self, error: ApiError) -> Step:
        """As before, and the client is told how it stands with its limits."""
        return super().fail(replace(error, headers={**self._limits_told, **error.headers}))

    @property
    def _limits_told(self) -> Mapping[str, str]:
        """The headers that tell how the client stands with its limits, once that is known."""
        reserved = self._facts.get(Reserve)
        return reserved.headers if reserved is not None else {}

    def _last_asks(self) -> list[LastAsk]:
        context = self._context
        asks = (kind.needed(self._facts, context.report) for kind in context.last_asks)
        return [ask for ask in asks if ask is not None]


class Ended(Phase):
    """The exchange is over; nothing changes any more."""

    def take(self, event: Event) -> Step:
        """Nothing is heeded."""
        return self._take_any(event)
