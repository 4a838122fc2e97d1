"""What was found out about an endpoint, as text to read and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.rules import RULES, Violation
from conformance.shapes import Json


@dataclass(frozen=True)
class Result:
    """One probe's outcome. ``status`` is the HTTP status, ``None`` where there was no answer."""

    probe: str
    status: int | None
    events: int
    violations: list[Violation]

    @property
    def sound(self) -> bool:
        """Whether nothing worse than warnings was found."""
        return all(violation.warning for violation in self.violations)

    def lines(self) -> list[str]:
        """One line for the probe and one for each violation."""
        verdict = "ok  " if self.sound else "FAIL"
        outcome = "no answer" if self.status is None else f"{self.status}"
        events = f", {self.events} events" if self.events else ""
        return [f"{verdict}  {self.probe}: {outcome}{events}", *map(_line, self.violations)]

    def to_json(self) -> Json:
        """The outcome as a JSON object."""
        return {
            "probe": self.probe,
            "status": self.status,
            "events": self.events,
            "sound": self.sound,
            "violations": [
                {**violation._asdict(), "level": "warning" if violation.warning else "violation"}
                for violation in self.violations
            ],
        }


@dataclass
class Report:
    """The outcomes of all probes of one endpoint."""

    url: str
    model: str
    results: list[Result] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing worse than warnings was found."""
        return all(result.sound for result in self.results)

    def summary(self) -> str:
        """The last line: numbers, and the rules that do not hold."""
        violations = [violation for result in self.results for violation in result.violations]
        warnings = sum(violation.warning for violation in violations)
        broken = ", ".join(rule for rule in RULES if any(violation.rule == rule for violation in violations))
        counts = f"{len(self.results)} requests, {len(violations) - warnings} violations, {warnings} warnings"
        return f"{counts}: {broken}" if broken else counts

    def to_json(self) -> Json:
        """The report as a JSON object."""
        return {
            "url": self.url,
            "model": self.model,
            "sound": self.sound,
            "results": [result.to_json() for result in self.results],
        }


def _line(violation: Violation) -> str:
    where = "" if violation.event_index is None else f" (event {violation.event_index})"
    level = "warning: " if violation.warning else ""
    return f"      {level}{violation.rule}{where}: {violation.message}"
