"""A third ask and a last one, as a feature that waits adds them: a file, and a line each in the driver's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from sidecar.exchange.asks import Ask, Facts, LastAsk
from sidecar.exchange.load import plan_of
from sidecar.exchange.report import Report


@dataclass(frozen=True, slots=True)
class Reserve(Ask[str]):
    """Set the prompt's tokens aside; the answer is a receipt."""

    tokens: int

    @classmethod
    def needed(cls, facts: Facts) -> Self:
        return cls(plan_of(facts).input_tokens)


@dataclass(frozen=True, slots=True)
class Settle(LastAsk):
    """Account for what was used of the reservation."""

    receipt: str
    outcome: str
    tokens: int

    @classmethod
    def needed(cls, facts: Facts, report: Report) -> Self | None:
        receipt = facts.get(Reserve)
        return None if receipt is None else cls(receipt, report.outcome, report.usage.output_tokens)

    @classmethod
    def of_late(cls, ask: Ask[Any], result: Any, report: Report) -> Self | None:
        return cls(result, report.outcome, 0) if isinstance(ask, Reserve) else None
