"""The access log: one JSON object per exchange, without any of its content."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from sidecar.exchange.commands import Command
from sidecar.exchange.events import Event
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.report import Report

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
        _access_log.info("%s", json.dumps(_entry(report)))


def _entry(report: Report) -> dict[str, object]:
    usage, timing = report.usage, report.timing
    return {
        "request_id": report.request_id,
        "outcome": report.outcome,
        "backend_failure": report.backend_error.failure if report.backend_error else None,
        "model": report.model,
        "stream": report.stream,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "counted": report.counted,
        "broke_schema": report.broke_schema,
        "missed_call": report.missed_call,
        "broken_arguments": report.broken_arguments,
        "unchecked": report.unchecked,
        "broken_characters": report.broken_characters,
        "ttft_ms": timing.ttft_ms,
        "total_ms": round(timing.total * 1000, 1),
    }
