"""The access log: a line per exchange, by the ids that Envoy's, the ledger and receipts have; no content."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sidecar.exchange.commands import Command
from sidecar.exchange.events import Event
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.report import Report
from sidecar.telemetry.log_lines import with_members

_log = logging.getLogger(__name__)
_access_log = logging.getLogger("sidecar.access")


class AccessLog:
    """Writes a line when an exchange is over."""

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """Wait for the end."""
        if not exchange.done:
            return
        report = exchange.report
        if report.backend_error is not None:
            # The runtime's own words may hold prompts: they are for an operator who asks for them.
            _log.debug("request %s: the model runtime said: %r", report.request_id, report.backend_error.words)
        _access_log.info("request", extra=with_members(_entry(report)))


def _entry(report: Report) -> dict[str, object]:
    caller, usage, timing = report.caller, report.usage, report.timing
    return {
        "request_id": report.request_id,
        "trace_id": report.trace_id or None,
        "response_id": report.response_id,
        "organization": caller.organization or None,
        "project": caller.project or None,
        "environment": caller.environment or None,
        "key": caller.key or None,
        "surface": report.surface,
        "model": report.model,
        "stream": report.stream,
        "outcome": report.outcome,
        "backend_failure": report.backend_error.failure if report.backend_error else None,
        "routes": [attempt.route for attempt in report.attempts],
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "counted": report.counted,
        "broke_schema": report.broke_schema,
        "missed_call": report.missed_call,
        "broken_arguments": report.broken_arguments,
        "repaired_calls": report.repaired_calls,
        "unchecked": report.unchecked,
        "broken_characters": report.broken_characters,
        # Zero is that of no token.
        "ttft_ms": timing.ttft_ms or None,
        "total_ms": round(timing.total * 1000, 1),
    }
