"""Whose a stored response is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sidecar.responses.caller import Caller


@dataclass(frozen=True, slots=True)
class Owner:
    """A team's organization id, and the project and environment in it; a response is visible to exactly its owner."""

    organization: str
    project: str = ""
    environment: str = ""

    @classmethod
    def of(cls, caller: Caller) -> Self:
        """Whose the responses are that ``caller`` stores."""
        return cls(caller.organization, caller.project, caller.environment)
