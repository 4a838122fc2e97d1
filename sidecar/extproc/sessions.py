"""The registry of the sessions under way, whatever transport brings them: their start, time, end and drain."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from sidecar.exchange.catalog import Catalog
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.forwarded import TRACE_HEADERS, trace_id
from sidecar.exchange.phases import Calling
from sidecar.extproc.driver import Clock, Observer, Performers, Tracer
from sidecar.extproc.session import NO_TRACE, Session, Transport
from sidecar.extproc.wires import WIRES, Wires
from sidecar.responses.errors import ApiError
from sidecar.surfaces.surface import Surface

# gRPC initial metadata that the Envoy route sets for its requests.
SURFACE_METADATA = "x-responses-surface"
WIRE_METADATA = "x-responses-wire"

_TICK_SECONDS = 0.25


class SystemClock:
    """The process's clocks."""

    # Without calls of ours around them: each token reads the first.
    monotonic = staticmethod(time.monotonic)
    unix = staticmethod(time.time)


class Sessions:
    """Starts sessions and keeps account of those under way.

    ``catalog`` and ``surfaces`` may be exchanged at any time: a session keeps to those it began with. The order of
    ``performers`` is the order in which asks are made.
    """

    def __init__(
        self,
        catalog: Catalog,
        surfaces: Mapping[str, Surface],
        performers: Performers,
        observers: Sequence[Observer],
        clock: Clock | None = None,
        wires: Wires = WIRES,
        tracer: Tracer | None = None,
    ) -> None:
        self.catalog = catalog
        self.surfaces = surfaces
        self._performers = performers
        self._observers = observers
        self._wires = wires
        self._tracer = tracer
        self._clock = clock or SystemClock()
        self._active: set[Session] = set()
        self._settling: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def active(self) -> int:
        """How many sessions are under way."""
        return len(self._active)

    def exchanges(self) -> Iterator[Exchange]:
        """Those of the sessions under way."""
        return (session.exchange for session in self._active)

    def open(self, transport: Transport, metadata: Mapping[str, str]) -> Session:
        """A session for a new ext_proc stream; ``metadata`` is its initial metadata.

        Raises:
            KeyError: the route names no known surface or wire.
        """
        name = metadata[SURFACE_METADATA]
        exchange = Exchange(self.surfaces[name], self.catalog, self._performers, entropy=os.urandom(18))
        exchange.report.surface = name
        wire = self._wires[metadata[WIRE_METADATA]]()
        session = Session(
            transport,
            exchange,
            wire,
            self._performers,
            self._observers,
            self._clock,
            self._tracer,
            {name: metadata[name] for name in TRACE_HEADERS if name in metadata} if trace_id(metadata) else NO_TRACE,
        )
        self._active.add(session)
        self._idle.clear()
        return session

    def close(self, session: Session) -> None:
        """The stream of ``session`` has ended, well or not; what outlives it goes on."""
        session.lost()
        self._active.discard(session)
        if not self._active:
            self._idle.set()
        if not session.is_settled:
            task = asyncio.create_task(session.settled())
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def tick_forever(self) -> None:
        """Tell the sessions under way that time passes, until cancelled. One timer serves them all."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = self._clock.monotonic()
            for session in [session for session in self._active if session.due_at <= now]:
                session.tick()

    def abort_all(self, error: ApiError) -> None:
        """End the sessions under way with ``error``."""
        for session in list(self._active):
            session.abort(error)

    def abort_waiting(self, model: str, error: ApiError) -> None:
        """End those with ``error`` that have called ``model`` and heard nothing of it."""
        for session in list(self._active):
            if session.exchange.phase is Calling and session.exchange.report.model == model:
                session.abort(error)

    def close_all(self) -> None:
        """The streams of all sessions have ended: Envoy reads nothing more."""
        for session in list(self._active):
            self.close(session)

    async def idle(self, seconds: float) -> bool:
        """Wait for at most ``seconds`` until no session is under way; whether none is."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        return not self._active

    async def settled(self) -> None:
        """Wait for all that outlives the sessions that have ended."""
        while self._settling:
            await asyncio.wait(self._settling)
