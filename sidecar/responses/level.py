"""Where a rule of a team holds: for all of it, for one of its projects, or for one environment of a project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

ALL = "*"


class Placed(Protocol):
    """Something of one environment of one project of one team."""

    @property
    def organization(self) -> str:
        """The team's id."""

    @property
    def project(self) -> str:
        """Empty where it is of none."""

    @property
    def environment(self) -> str:
        """Empty where it is of none."""


@dataclass(frozen=True, slots=True)
class Level:
    """A team, or one project of it, or one environment of one project."""

    organization: str
    project: str = ALL
    environment: str = ALL

    def covers(self, placed: Placed) -> bool:
        """Whether ``placed`` is this level or below."""
        return (
            self.organization in (ALL, placed.organization)
            and self.project in (ALL, placed.project)
            and self.environment in (ALL, placed.environment)
        )

    @property
    def narrowness(self) -> int:
        """More for what is further down."""
        return sum(name != ALL for name in (self.organization, self.project, self.environment))
