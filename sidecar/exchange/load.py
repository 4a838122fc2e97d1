"""The asks of a request that continues a stored response: its conversation is loaded, and then it is prepared anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.earlier import Continued, Earlier
from sidecar.exchange.plan import Prepare
from sidecar.exchange.planned import Plan
from sidecar.stored.owner import Owner


@dataclass(frozen=True, slots=True)
class Load(Ask[Earlier]):
    """Load the conversation that a request continues; a response of it that is being made is waited for."""

    owner: Owner
    previous_id: str

    @classmethod
    def needed(cls, facts: Facts) -> Self | None:
        """Where it continues one."""
        prepared = facts[Prepare]
        if not isinstance(prepared, Continued):
            return None
        return cls(Owner.of(facts.request.caller), prepared.previous_id)


@dataclass(frozen=True, slots=True)
class PrepareContinued(Ask[Plan]):
    """Make the plan of a request that continues a conversation."""

    prepare: Prepare

    @classmethod
    def needed(cls, facts: Facts) -> Self | None:
        """Where one has been loaded."""
        earlier = facts.get(Load)
        return cls(Prepare(facts, earlier)) if earlier is not None else None


def plan_of(facts: Facts) -> Plan:
    """The plan of a request that has been prepared; raises :class:`KeyError` for any other."""
    plan = facts.get(PrepareContinued) or facts[Prepare]
    if isinstance(plan, Continued):
        raise KeyError(PrepareContinued)
    return plan
