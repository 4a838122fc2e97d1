"""Notes what exchanges do for the last hour's steps, and those that failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sidecar.exchange.commands import CallUpstream, Command, SendHead
from sidecar.exchange.events import Event
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.report import Report
from sidecar.responses.errors import CODES
from sidecar.responses.marks import Counts
from sidecar.telemetry.recent.failures import Failure, Failures
from sidecar.telemetry.recent.steps import Count, Steps

_SERVER_ERROR = 500
# A loop that was stuck for longer counts its streams no further: nobody has had anything of them.
_LONGEST_LOOK_SECONDS = 5.0


class NoteRecent:
    """An observer. An answer's tokens are looked at twice a second while it goes on, so that a token costs nothing."""

    def __init__(self, directory: Path, index: int, clock: Callable[[], float] = time.time) -> None:
        """For the worker ``index``; ``clock`` tells seconds since the epoch.

        Raises:
            OSError: its files in ``directory`` cannot be made.
        """
        self._steps = Steps(directory, index, clock)
        self._failures = Failures(directory, index)
        self._clock = clock
        self._streams: set[Exchange] = set()
        self._tokens: dict[Exchange, int] = {}
        self._looked_at = clock()

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """Note the begin and the end."""
        for command in commands:
            if type(command) is CallUpstream:
                self._tokens.setdefault(exchange, 0)
            elif type(command) is SendHead:
                self._streams.add(exchange)
        if exchange.done:
            self._over(exchange)

    def look(self) -> None:
        """Note how far the answers have come that go on."""
        now = self._clock()
        elapsed = min(max(0.0, now - self._looked_at), _LONGEST_LOOK_SECONDS)
        self._looked_at = now
        if self._streams:
            self._steps.add(Count.STREAM_MS, round(len(self._streams) * elapsed * 1000))
        for exchange in self._tokens:
            self._count_tokens(exchange)

    def _over(self, exchange: Exchange) -> None:
        report, steps = exchange.report, self._steps
        self._streams.discard(exchange)
        if exchange in self._tokens:
            self._count_tokens(exchange)
            del self._tokens[exchange]
        if report.outcome == "ok":
            return
        steps.add(Count.REQUESTS)
        first_token_at = report.timing.first_token_at
        if first_token_at is not None:
            steps.first_token(first_token_at - report.timing.head_at)
            steps.add(Count.INPUT_TOKENS, report.usage.input_tokens)
        if report.outcome in CODES:
            failed = CODES[report.outcome].status >= _SERVER_ERROR
            steps.add(Count.FAILED if failed else Count.REFUSED)
            self._failures.note(self._failure(report))

    def _count_tokens(self, exchange: Exchange) -> None:
        report = exchange.report
        # What an upstream tells of its tokens it tells at the end; until then there are those of the events.
        tokens = max(report.usage.output_tokens, Counts.of(report.delivered.written).output_tokens)
        if (more := tokens - self._tokens[exchange]) > 0:
            self._steps.add(Count.OUTPUT_TOKENS, more)
            self._tokens[exchange] = tokens

    def _failure(self, report: Report) -> Failure:
        return Failure(
            at=round(self._clock(), 3),
            request_id=report.request_id,
            surface=report.surface,
            model=report.model or "",
            code=report.outcome,
            backend=report.backend_error.failure if report.backend_error else "",
            seconds=round(report.timing.total, 3),
        )
