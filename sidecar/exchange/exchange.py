"""One request's life, without I/O.

Two rules:

* The exchange never waits and never looks at a clock, a socket or a random source. Whatever it needs comes with an
  event; whatever it wants done goes out as a command, and what has to be waited for as an ask, whose answer is an event
  again. What went wrong ends as an :class:`ApiError`.
* It ends exactly once: with ``Reply`` while no head has been sent, with ``Finish`` after that, or because the client
  has gone. Events that come later change nothing.

It goes through the phases of :mod:`sidecar.exchange.phases`, in the order of :mod:`sidecar.exchange.transitions`. Only
one thread may touch it; what is done in another thread is done by an ask, which sees the facts and not the exchange.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sidecar.exchange.asks import Ask, LastAsk
from sidecar.exchange.catalog import Catalog
from sidecar.exchange.claim import Claimed
from sidecar.exchange.commands import Command, SendBody
from sidecar.exchange.events import Answered, Event, Tick, UpstreamBytes
from sidecar.exchange.phases import Answering, Context, Ended, Phase, Waiting
from sidecar.exchange.plan import most_bytes
from sidecar.exchange.recording import Recording
from sidecar.exchange.report import Report
from sidecar.exchange.transitions import TRANSITIONS
from sidecar.responses.errors import ApiError
from sidecar.surfaces.surface import Surface


class Exchange:
    """One request and its answer.

    ``asks`` are the kinds of asks that can be performed, in the order in which they are made. ``entropy`` is 18 random
    bytes, for ids and the sampling seed.
    """

    def __init__(
        self,
        surface: Surface,
        catalog: Catalog,
        asks: Iterable[type[Ask[Any]] | type[LastAsk]],
        *,
        entropy: bytes,
    ) -> None:
        self.report = Report()
        """What is known of the exchange; whole once it is done."""
        self.max_request_bytes = most_bytes(surface, catalog)
        """How much of a request's body is of use; of a larger one only the size counts."""
        kinds = tuple(asks)
        before = tuple(kind for kind in kinds if issubclass(kind, Ask))
        last = tuple(kind for kind in kinds if issubclass(kind, LastAsk))
        self._recording: Recording | None = None
        # The phase where tokens come, unless what its client is given is gathered.
        self._per_token: Answering | None = None
        self._phase: Phase = Waiting(Context(surface, catalog, entropy, before, last, self.report))

    @property
    def phase(self) -> type[Phase]:
        """Where the exchange is."""
        return type(self._phase)

    @property
    def heard_at(self) -> float:
        """When the upstream was last heard of in an answer under way; minus infinity where none has begun."""
        return self._phase.heard_at

    @property
    def due_at(self) -> float:
        """When a ``Tick`` will change something, on the clock of the events; infinity while none will."""
        return min(self._phase.due_at, self._phase.deadline_at)

    @property
    def done(self) -> bool:
        """Whether the exchange is over."""
        return type(self._phase) is Ended

    def handle(self, event: Event) -> list[Command]:
        """What to do about ``event``, in order. Never raises :class:`ApiError`."""
        follows = TRANSITIONS[type(self._phase)].get(type(event))
        if follows is None:
            return []
        try:
            if type(event) is Tick and event.at >= self._phase.deadline_at:
                raise ApiError("deadline_exceeded", "The answer was not complete in the time that a request may take.")
            phase, commands = self._phase.take(event)
        except ApiError as error:
            phase, commands = self._phase.fail(error)
            # Its frames hold the event that holds it: the request would stay until a garbage collection, which is rare.
            error.__traceback__ = None
        assert type(phase) in follows, f"{type(phase).__name__} after {type(event).__name__} is not in the table"
        self._phase = phase
        if type(event) is Answered and isinstance(event.result, Claimed):
            self._recording = event.result.recording
        if self._recording is not None:
            self._recording.note(commands)
        self._per_token = phase if type(phase) is Answering and self._recording is None else None
        return commands

    def upstream(self, data: bytes, at: float) -> bytes | list[Command]:
        """The same as ``handle(UpstreamBytes(data, at))``, without the event: this is the per-token path.

        Plain bytes, of the body and perhaps none, stand for a ``SendBody`` with them as all that is to be done.
        """
        phase = self._per_token
        if phase is None:
            return self.handle(UpstreamBytes(data, at))
        events = phase.upstream(data, at)
        if not phase.over:
            return events
        commands = self.handle(UpstreamBytes(b"", at))
        return [SendBody(events), *commands] if events else commands
