"""Whose a stored response is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owner:
    """A team's organization id, and the project and environment in it; a response is visible to exactly its owner."""

    organization: str
    project: str = ""
    environment: str = ""
