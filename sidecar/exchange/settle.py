"""The last ask: what an exchange has used is settled, whatever became of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from sidecar.admission.entries import Settlement
from sidecar.exchange.asks import Ask, Facts, LastAsk
from sidecar.exchange.load import plan_of
from sidecar.exchange.planned import Plan
from sidecar.exchange.report import Report
from sidecar.exchange.reserve import Reserve, Reserved

_UNFAILED = ("completed", "incomplete", "client_gone")


@dataclass(frozen=True, slots=True)
class Settle(LastAsk):
    """Settle what was reserved."""

    plan: Plan
    reserved: Reserved
    report: Report

    @classmethod
    def needed(cls, facts: Facts, report: Report) -> Self | None:
        """Where something was reserved."""
        reserved = facts.get(Reserve)
        return cls(plan_of(facts), reserved, report) if reserved is not None else None

    @classmethod
    def of_late(cls, ask: Ask[Any], result: Any, report: Report) -> Self | None:
        """What was reserved is settled, although the client had left in that moment."""
        return cls(ask.plan, result, report) if isinstance(ask, Reserve) and isinstance(result, Reserved) else None

    def settlement(self) -> Settlement:
        """How it ended, once the client can be given no more.

        What is billed begins with what the client has been given; or, where it did not wait for that, with what the
        model had begun to generate for it.
        """
        report = self.report
        usage, timing, delivered = report.usage, report.timing, report.delivered.counts
        left = timing.first_token_at is not None and report.outcome in _UNFAILED
        return Settlement(
            self.reserved.request.id,
            report.outcome,
            begun=delivered.begun or left,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cached_tokens,
            output_tokens=delivered.output_tokens,
            reasoning_tokens=delivered.reasoning_tokens,
            guided_tokens=delivered.output_tokens if self.plan.guided else 0,
            generated_tokens=usage.output_tokens,
            image_bytes=self.reserved.images.used,
            first_token_ms=round(timing.ttft_ms) if timing.first_token_at is not None else None,
            total_ms=round(timing.total * 1000),
            searches=min(report.searches, self.reserved.request.searches),
            attempts=_written(report),
        )


def _written(report: Report) -> str | None:
    """The attempts as they are kept."""
    attempts = [{**asdict(attempt), "outcome": attempt.outcome or report.outcome} for attempt in report.attempts]
    return json.dumps(attempts, separators=(",", ":")) if attempts else None
