"""What was found out about an endpoint, as text to read and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from conformance.rules import RULES, Violation
from conformance.shapes import Json

SHOWN = 3
"""Violations of one rule that are told of one answer; the JSON form has all."""

Outcome = Literal["ok", "failed", "not supported", "not tried"]
_VERDICTS: dict[Outcome, str] = {"ok": "ok  ", "failed": "FAIL", "not supported": "--  ", "not tried": "--  "}


@dataclass(frozen=True)
class Result:
    """One probe's outcome.

    ``expected`` are the HTTP statuses that the answer may have, in words; ``status`` is the one it has, ``None`` where
    there was no answer. ``server_message`` is what the server said of a request it refused. ``skipped`` says why a
    probe does not count: the endpoint does not support it, or the turn before it left nothing to send.
    """

    probe: str
    expected: str
    status: int | None = None
    events: int = 0
    violations: list[Violation] = field(default_factory=list)
    server_message: str | None = None
    skipped: Literal["not supported", "not tried"] | None = None

    @property
    def sound(self) -> bool:
        """Whether nothing worse than warnings was found."""
        return all(violation.warning for violation in self.violations)

    @property
    def outcome(self) -> Outcome:
        """The outcome in a word."""
        return "failed" if not self.sound else self.skipped or "ok"

    def lines(self) -> list[str]:
        """One line for the probe, and one for each violation but for many of one rule."""
        words = []
        if self.status is not None:
            words.append(f"{self.status}")
        elif self.skipped is None:
            words.append("no answer")
        if self.skipped is not None:
            words.append(self.skipped + (f" ({self.server_message})" if self.server_message else ""))
        if self.events:
            words.append(f"{self.events} events")
        return [f"{_VERDICTS[self.outcome]}  {self.probe}: {', '.join(words)}", *self._violation_lines()]

    def _violation_lines(self) -> list[str]:
        counts = Counter(violation.rule for violation in self.violations)
        shown: Counter[str] = Counter()
        lines = []
        for violation in self.violations:
            shown[violation.rule] += 1
            if shown[violation.rule] <= SHOWN:
                lines.append(_line(violation))
            elif shown[violation.rule] == counts[violation.rule]:
                lines.append(f"      {violation.rule}: {counts[violation.rule] - SHOWN} more")
        return lines

    def to_json(self) -> Json:
        """The outcome as a JSON object."""
        return {
            "probe": self.probe,
            "outcome": self.outcome,
            "expected": self.expected,
            "status": self.status,
            "server_message": self.server_message,
            "events": self.events,
            "sound": self.sound,
            "violations": [
                {**violation._asdict(), "level": "warning" if violation.warning else "violation"}
                for violation in self.violations
            ],
        }


@dataclass
class Verification:
    """The outcomes of all probes of one endpoint. ``error`` says why it could not be tried."""

    url: str
    model: str | None
    results: list[Result] = field(default_factory=list)
    error: str | None = None

    @property
    def sound(self) -> bool:
        """Whether the endpoint could be tried, and nothing worse than warnings was found."""
        return self.error is None and all(result.sound for result in self.results)

    def skipped(self, outcome: Outcome) -> list[str]:
        """The names of the probes with an ``outcome``."""
        return [result.probe for result in self.results if result.outcome == outcome]

    def summary(self) -> str:
        """The last lines: what was not tried, the numbers, and the rules that do not hold."""
        violations = [violation for result in self.results for violation in result.violations]
        warnings = sum(violation.warning for violation in violations)
        broken = ", ".join(rule for rule in RULES if any(violation.rule == rule for violation in violations))
        counts = [_count(len(self.results), "probe"), _count(len(violations) - warnings, "violation")]
        counts.append(_count(warnings, "warning"))
        lines = []
        for outcome in ("not supported", "not tried"):
            if names := self.skipped(outcome):
                counts.append(f"{len(names)} {outcome}")
                lines.append(f"{outcome}: {'; '.join(names)}")
        return "\n".join([*lines, ", ".join(counts) + (f": {broken}" if broken else "")])

    def to_json(self) -> Json:
        """The verification as a JSON object."""
        return {
            "url": self.url,
            "model": self.model,
            "sound": self.sound,
            "error": self.error,
            "not_supported": self.skipped("not supported"),
            "not_tried": self.skipped("not tried"),
            "results": [result.to_json() for result in self.results],
        }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _line(violation: Violation) -> str:
    where = "" if violation.event_index is None else f" (event {violation.event_index})"
    level = "warning: " if violation.warning else ""
    return f"      {level}{violation.rule}{where}: {violation.message}"
