"""Counts exchanges: nearly all when one is over, from its report, so that a token costs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.exchange.asks import Ask
from sidecar.exchange.commands import Command, SendHead
from sidecar.exchange.events import Abort, Answered, ClientGone, Event
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.report import TRITON, Report
from sidecar.exchange.reserve import Reserve
from sidecar.responses.errors import ApiError
from sidecar.telemetry.metrics import table
from sidecar.telemetry.metrics.metrics import Metrics

_WELL = ("completed", "incomplete")
_NO_ERROR = (*_WELL, "ok", "client_gone")


class CountExchanges:
    """Keeps what must be known of an exchange from one of its events to the next, until it is over."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._asked: dict[Exchange, float] = {}
        self._streams: set[Exchange] = set()

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """Note the times of asks, the streams, and the end."""
        if type(event) is Answered:
            self._answered(exchange, event)
        for command in commands:
            if isinstance(command, Ask) and not isinstance(event, Abort | ClientGone):
                self._asked[exchange] = event.at
            elif type(command) is SendHead and not exchange.done:
                self._streams.add(exchange)
                self._metrics.set(table.STREAMS, len(self._streams))
        if exchange.done:
            self._over(exchange)

    def _answered(self, exchange: Exchange, event: Answered) -> None:
        asked_at = self._asked.pop(exchange, None)
        if asked_at is None:
            return
        self._metrics.observe(table.STEPS, event.at - asked_at, type(event.ask).__name__)
        if isinstance(event.ask, Reserve):
            decision = event.result.code if isinstance(event.result, ApiError) else "admitted"
            self._metrics.count(table.ADMISSIONS, event.ask.plan.model.name, decision)

    def _over(self, exchange: Exchange) -> None:
        self._asked.pop(exchange, None)
        if exchange in self._streams:
            self._streams.discard(exchange)
            self._metrics.set(table.STREAMS, len(self._streams))
        report = exchange.report
        outcome, code = (report.outcome, "") if report.outcome in _NO_ERROR else ("error", report.outcome)
        self._metrics.count(table.REQUESTS, report.surface, report.model or "", outcome, code)
        if report.model is not None:
            self._called(report, report.model, code)

    def _called(self, report: Report, model: str, code: str) -> None:
        """What there is to tell of a request whose model was called."""
        metrics, usage, timing = self._metrics, report.usage, report.timing
        route = report.attempts[-1].route if report.attempts else TRITON
        labels = (table.OPERATION, route, model)
        metrics.observe(table.DURATION, timing.total, *labels, code)
        for attempt in report.attempts:
            metrics.count(table.ATTEMPTS, model, attempt.route, attempt.outcome or report.outcome)
        if timing.first_token_at is not None:
            metrics.observe(table.FIRST_TOKEN, timing.first_token_at - timing.head_at, *labels)
            metrics.observe(table.HELD_HEAD, timing.first_token_at - timing.called_at, model)
            metrics.observe(table.TOKEN_USAGE, usage.input_tokens, *labels, "input")
            metrics.observe(table.TOKEN_USAGE, usage.output_tokens, *labels, "output")
            self._tokens(report, model)
            if report.outcome in _WELL and usage.output_tokens > 1 and timing.model_done_at is not None:
                seconds = timing.model_done_at - timing.first_token_at
                metrics.observe(table.PER_TOKEN, seconds / (usage.output_tokens - 1), *labels)
        self._faults(report, model)

    def _tokens(self, report: Report, model: str) -> None:
        usage = report.usage
        counts = {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cached": usage.cached_tokens,
            "reasoning": usage.reasoning_tokens,
        }
        for kind, tokens in counts.items():
            if tokens:
                self._metrics.count(table.TOKENS, model, kind, by=tokens)

    def _faults(self, report: Report, model: str) -> None:
        metrics = self._metrics
        if report.broken_characters:
            metrics.count(table.BROKEN_CHARACTERS, model, by=report.broken_characters)
        if report.repaired_calls:
            metrics.count(table.REPAIRED_CALLS, model, by=report.repaired_calls)
        for fault, times in (
            ("schema", report.broke_schema),
            ("missed_call", report.missed_call),
            ("arguments", report.broken_arguments),
            ("unchecked", report.unchecked),
        ):
            if times:
                metrics.count(table.FAULTY_OUTPUT, model, fault, by=times)
        if report.backend_error is not None:
            metrics.count(table.UPSTREAM_FAILURES, model, report.backend_error.failure)
