"""Runs one exchange: has its asks performed, feeds the answers back, and shows observers what happens.

Only the event loop touches an exchange. An ask that is not answered at once is a task of its own; it is cancelled as
soon as the exchange is over, because the client has left, the exchange was aborted, or the ask took too long. The last
asks are not: they begin when the client can be given no more of the answer, are carried through, and the worker waits
for them before it stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from sidecar.exchange.asks import Ask, LastAsk
from sidecar.exchange.commands import Command, Output
from sidecar.exchange.events import Abort, Answered, Event, UpstreamBytes
from sidecar.exchange.exchange import Exchange
from sidecar.responses.errors import ApiError

_log = logging.getLogger(__name__)

Result_co = TypeVar("Result_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Done(Generic[Result_co]):
    """What an ask that needed no waiting has come to: it costs no task."""

    result: Result_co


Performer = Callable[[Any], Awaitable[object] | Done[object]]
"""Performs an ask, at once or by and by. It may raise :class:`ApiError`."""

Performers = Mapping[type[Ask[Any]] | type[LastAsk], Performer]
"""Who performs an ask, in the order in which the asks are made."""


class Clock(Protocol):
    """The two clocks of an exchange, in seconds."""

    def monotonic(self) -> float:
        """Never goes back."""

    def unix(self) -> float:
        """Since the epoch."""


class Observer(Protocol):
    """Sees what happens to every exchange: logs, metrics, traces.

    An ordinary token is not shown, so that observing costs nothing per token: the exchange's report counts them. An
    observer that raises harms no exchange; the log tells of its first exception.
    """

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """``event`` has happened to ``exchange``, and ``commands`` are what it wants done."""


class Tracer(Protocol):
    """Says to which trace the calls of models belong. It has been shown a call as an observer before it is asked."""

    def headers(self, exchange: Exchange) -> Mapping[str, str]:
        """Headers that go along with the call that ``exchange`` makes now, in place of those of the same names."""


class Driver:
    """One exchange under way. ``deliver`` takes the outputs that no call of a method here returns."""

    def __init__(
        self,
        exchange: Exchange,
        performers: Performers,
        observers: Sequence[Observer],
        clock: Clock,
        deliver: Callable[[Sequence[Output]], None],
    ) -> None:
        self.exchange = exchange
        self._performers = performers
        self._observers = observers
        self._clock = clock
        self._deliver = deliver
        self._asks: set[asyncio.Future[object]] = set()
        self._to_come: list[LastAsk] = []
        self._last: set[asyncio.Task[None]] = set()
        self._last_begun = False

    def handle(self, event: Event) -> list[Output]:
        """The outputs that ``event`` brings at once; asks are begun. What comes after the end is not even shown."""
        if self.exchange.done:
            return []
        return self._carry_out(event, self.exchange.handle(event))

    def upstream(self, data: bytes, at: float) -> bytes | list[Output]:
        """The same for bytes of the upstream, as ``Exchange.upstream`` has it. This is the per-token path."""
        commands = self.exchange.upstream(data, at)
        if isinstance(commands, bytes):
            return commands
        return self._carry_out(UpstreamBytes(data, at), commands) if commands else []

    @property
    def is_settled(self) -> bool:
        """Whether no last ask is under way or to come, and no answer."""
        return not (self._last or self._to_come or self._asks)

    def begin_last(self) -> None:
        """All of the answer has been handed over, or can no longer be: begin what was to come last."""
        # Whoever took the outputs holds this, and is to be freed without a garbage collection.
        self._deliver = _to_nobody
        self._last_begun = True
        asks, self._to_come = self._to_come, []
        for ask in asks:
            task = asyncio.create_task(self._perform_last(ask))
            self._last.add(task)
            task.add_done_callback(self._last.discard)

    async def settled(self) -> None:
        """Wait until the last asks that have begun have been carried through."""
        while under_way := self._last | self._asks:
            await asyncio.wait(under_way)

    def _carry_out(self, event: Event, commands: Sequence[Command]) -> list[Output]:
        timing = self.exchange.report.timing
        if self.exchange.done and timing.done_at is None:
            # An exchange that fails, or whose client leaves, is not told the time.
            timing.done_at = self._clock.monotonic()
        for observer in self._observers:
            try:
                observer.observe(self.exchange, event, commands)
            except Exception:
                _tell_once(observer)
        outputs: list[Output] = []
        for command in commands:
            if isinstance(command, Ask):
                outputs += self._ask(command)
            elif isinstance(command, LastAsk):
                self._to_come.append(command)
            else:
                outputs.append(command)
        if self.exchange.done:
            self._give_up_asks()
        return outputs

    def _give_up_asks(self) -> None:
        for task in self._asks:
            task.cancel()

    def _ask(self, ask: Ask[Any]) -> list[Output]:
        """Have ``ask`` performed; the outputs that its answer brings, where that comes at once."""
        try:
            performing = self._performers[type(ask)](ask)
        except Exception as error:
            return self.handle(self._failed(ask, error))
        if isinstance(performing, Done):
            return self.handle(Answered(ask, performing.result, self._clock.monotonic()))
        task = asyncio.ensure_future(performing)
        self._asks.add(task)
        task.add_done_callback(lambda task: self._take_answer(ask, task))
        return []

    def _take_answer(self, ask: Ask[Any], task: asyncio.Future[object]) -> None:
        self._asks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None and self.exchange.done:
            self._too_late(ask, task.result())
            return
        if error is None:
            event: Event = Answered(ask, task.result(), self._clock.monotonic())
        else:
            event = self._failed(ask, error)
        self._deliver(self.handle(event))

    def _too_late(self, ask: Ask[Any], result: object) -> None:
        """An answer that came as the exchange ended, too late to be cancelled, may have to be undone."""
        for kind in self._performers:
            if issubclass(kind, LastAsk) and (last := kind.of_late(ask, result, self.exchange.report)) is not None:
                self._to_come.append(last)
        if self._last_begun:
            self.begin_last()

    def _failed(self, ask: Ask[Any], error: BaseException) -> Event:
        if isinstance(error, ApiError):
            # Without its frames, one of which may hold what holds it.
            return Answered(ask, error.with_traceback(None), self._clock.monotonic())
        return Abort(self.fault(f"{type(ask).__name__} failed", error))

    async def _perform_last(self, ask: LastAsk) -> None:
        try:
            performing = self._performers[type(ask)](ask)
            if not isinstance(performing, Done):
                await performing
        except Exception as error:
            self.fault(f"{type(ask).__name__} failed", error)

    def fault(self, what: str, error: BaseException) -> ApiError:
        """Log ``error``, a fault of our own; the error that the client is told."""
        request_id = self.exchange.report.request_id
        _log.error("request %s: %s", request_id, what, exc_info=error)
        return ApiError("internal", f"internal error (request {request_id})")


def _to_nobody(outputs: Sequence[Output]) -> None:
    """After the end there are none."""


_faulty: WeakSet[Observer] = WeakSet()


def _tell_once(observer: Observer) -> None:
    """Log the exception of ``observer``, unless one of its exceptions has been logged: it may fail for every event."""
    if observer not in _faulty:
        _faulty.add(observer)
        _log.exception("the observer %s failed; its further failures are not logged", type(observer).__name__)
