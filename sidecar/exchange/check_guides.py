"""The ask whether decoding can be guided by the schemas of a request."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.load import plan_of
from sidecar.guidance.guides import Guide


@dataclass(frozen=True, slots=True)
class CheckGuides(Ask[None]):
    """Find out whether grammars can be made of the schemas that guide decoding, before a model runtime fails to."""

    guides: Sequence[Guide]
    client: Hashable

    @classmethod
    def needed(cls, facts: Facts) -> Self | None:
        """Where a schema has not been looked at before."""
        guides = plan_of(facts).unchecked_guides
        return cls(guides, facts.request.client) if guides else None
