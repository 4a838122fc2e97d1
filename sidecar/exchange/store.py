"""The asks for a response that is to be stored: it may be, it is announced, and it is stored once it is whole.

A response that its client gets whole says whether it is stored, so it is stored before that is said. A stream cannot
wait: its events say ``store: false``, and it is stored when it is over. Until then it is known to be under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from sidecar.exchange.asks import Ask, Facts, LastAsk
from sidecar.exchange.load import plan_of
from sidecar.exchange.report import Report
from sidecar.stored.record import Record
from sidecar.stored.seals import Place


@dataclass(frozen=True, slots=True)
class Announce(Ask[None]):
    """Find out whether a response may be stored, and let it be known where it is streamed."""

    place: Place
    stream: bool

    @classmethod
    def needed(cls, facts: Facts) -> Self | None:
        """Where it is to be stored."""
        plan = plan_of(facts)
        return cls(plan.keeping.place, plan.stream) if plan.keeping is not None else None


@dataclass(frozen=True, slots=True)
class Store(Ask[bool]):
    """Store a response that is whole, before its client is given it; the answer is whether it is stored."""

    seconds: ClassVar[float] = 15.0

    record: Record

    @classmethod
    def needed(cls, facts: Facts) -> Self | None:
        """Where it is to be stored and no stream, once it is whole."""
        plan = plan_of(facts)
        if facts.response is None or plan.keeping is None or plan.stream:
            return None
        return cls(Record.of(facts.response, plan.keeping.place.owner, plan.keeping.input, announced=False))


@dataclass(frozen=True, slots=True)
class Keep(LastAsk):
    """Store a response that was streamed to its end, or let it be forgotten that there was to be one."""

    response_id: str
    record: Record | None

    @classmethod
    def needed(cls, facts: Facts, report: Report) -> Self | None:
        """Where it was announced."""
        if Announce not in facts:
            return None
        plan = plan_of(facts)
        if plan.keeping is None or not plan.stream:
            return None
        place, record = plan.keeping.place, None
        if facts.response is not None:
            record = Record.of(facts.response, place.owner, plan.keeping.input, announced=True)
        return cls(place.response_id, record)
