"""Asks: what an exchange has to wait for, and what it knows of its request so far.

An exchange never waits. It says what it needs, the driver has that performed, and the answer comes back as an
``Answered`` event. An :class:`Ask` is answered before the upstream is called; a :class:`LastAsk` is made when the
exchange is over, performed when its client can be given no more of the answer, and carried through even when the
client has left, or the worker drains.

Each knows by itself whether a request needs it: one more is a class in a file of its own and a line in the driver's
table, whose order is the order in which they are made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Self, TypeVar

from sidecar.exchange.catalog import Catalog
from sidecar.exchange.events import RequestComplete
from sidecar.exchange.report import Report
from sidecar.responses.ids import ResponseIds, ulid
from sidecar.responses.json_text import Json
from sidecar.surfaces.surface import Surface

Result = TypeVar("Result")


class Facts:
    """What is known of a request: what it came with, and the answers to its asks, each under the ask's class.

    ``catalog`` is the one that was in force when the exchange began. ``entropy`` is 18 random bytes, for ids and the
    sampling seed.
    """

    def __init__(self, surface: Surface, catalog: Catalog, request: RequestComplete, entropy: bytes) -> None:
        self.surface = surface
        self.catalog = catalog
        self.request = request
        self.entropy = entropy
        self.seconds = surface.bounds.seconds
        """How long the request may take."""
        self.response: Json | None = None
        """The response once it is whole, be it complete or not."""
        self._answers: dict[type[Ask[Any]], Any] = {}

    @property
    def ids(self) -> ResponseIds:
        """The ids of the response, and of what is reserved for it."""
        return ResponseIds(ulid(int(self.request.unix_time * 1000), self.entropy[:10]))

    def __contains__(self, ask: type[Ask[Any]]) -> bool:
        """Whether an ask has been answered."""
        return ask in self._answers

    def __getitem__(self, ask: type[Ask[Result]]) -> Result:
        """The answer to an ask; raises :class:`KeyError` where there is none yet."""
        return self._answers[ask]  # type: ignore[no-any-return]

    def get(self, ask: type[Ask[Result]]) -> Result | None:
        """The answer to an ask; ``None`` where there is none."""
        return self._answers.get(ask)

    def add(self, ask: type[Ask[Result]], result: Result) -> None:
        """Note an answer."""
        self._answers[ask] = result


class Ask(ABC, Generic[Result]):
    """Something to wait for before the upstream is called; ``Result`` is the type of the answer."""

    seconds: ClassVar[float] = 240.0
    """How long an answer may take: less than Envoy's own patience, so that the client is told what happened."""

    @classmethod
    @abstractmethod
    def needed(cls, facts: Facts) -> Self | None:
        """The ask that a request needs, given what is known of it; ``None`` where it needs none.

        Raises:
            ApiError: the request is refused.
        """


class LastAsk(ABC):
    """Something to be done when an exchange is over. Nobody waits for it but the worker, before it stops.

    Only when it is performed does the report tell how much of the answer has been delivered.
    """

    @classmethod
    @abstractmethod
    def needed(cls, facts: Facts, report: Report) -> Self | None:
        """The ask that an exchange needs, given what is known of it and how it ended; ``None`` where it needs none."""

    @classmethod
    def of_late(cls, ask: Ask[Any], result: Any, report: Report) -> Self | None:
        """What is to be done about the answer to ``ask`` that came when the exchange was over; mostly nothing."""
        return None
