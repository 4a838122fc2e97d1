"""The last ask for a request that was accepted and then refused: its project's log has it all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sidecar.exchange.asks import Facts, LastAsk
from sidecar.exchange.load import plan_of
from sidecar.exchange.report import Report
from sidecar.exchange.reserve import Reserve

REFUSALS = ("policy_denied", "rate_limited", "concurrency_limited", "quota_exceeded", "credits_exhausted")
"""The codes of refusals that are noted."""


@dataclass(frozen=True, slots=True)
class NoteRefusal(LastAsk):
    """Note that what ``reserve`` asks for was refused with ``code``."""

    reserve: Reserve
    code: str

    @classmethod
    def needed(cls, facts: Facts, report: Report) -> Self | None:
        """Where a project's request has been planned, and nothing was reserved for it because of what it is."""
        if Reserve in facts or report.outcome not in REFUSALS or not facts.request.caller.project:
            return None
        try:
            plan_of(facts)
        except KeyError:
            return None
        return cls(Reserve.of(facts), report.outcome)
