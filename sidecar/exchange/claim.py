"""The asks of a request with an idempotency key: it claims the key first of all, and in the end is remembered or lets
the key go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from sidecar.exchange.asks import Ask, Facts, LastAsk
from sidecar.exchange.plan import most_bytes
from sidecar.exchange.recording import Recording
from sidecar.exchange.report import Report
from sidecar.exchange.reserve import Reserve
from sidecar.responses.reply import Reply
from sidecar.stored.answers import Answer
from sidecar.stored.claims import Claim, Use
from sidecar.stored.owner import Owner

_WITH_WHAT_IT_HAD = ("client_gone", "deadline_exceeded")


@dataclass(frozen=True, slots=True)
class Claimed:
    """The key is held. ``earlier`` are the ids of those before whose cost is given back once this one is answered.

    What the client is given is gathered in ``recording``.
    """

    claim: Claim
    earlier: tuple[str, ...]
    recording: Recording = field(default_factory=Recording)


@dataclass(frozen=True, slots=True)
class ClaimKey(Ask[Claimed | Reply]):
    """Claim the idempotency key of a request, or find the answer that it stands for; who holds it is waited for."""

    use: Use

    @classmethod
    def needed(cls, facts: Facts) -> Self | None:
        """Where it has one, and is not refused for its size.

        Raises:
            ApiError: it is no key, or no answers are kept here.
        """
        request, surface = facts.request, facts.surface
        key = surface.idempotency_key(request.headers)
        if key is None or request.body_bytes > most_bytes(surface, facts.catalog):
            return None
        method, path = request.headers[":method"], request.headers[":path"]
        owner, credential = Owner.of(request.caller), request.caller.key
        return cls(Use(owner, credential, key, method, path, request.body, facts.ids.ulid))


@dataclass(frozen=True, slots=True)
class EndClaim(LastAsk):
    """Keep the answer that a key stands for from now on, or let go of the key."""

    claimed: Claimed
    reserved: bool
    report: Report

    @classmethod
    def needed(cls, facts: Facts, report: Report) -> Self | None:
        """Where the key is held."""
        claimed = facts.get(ClaimKey)
        if not isinstance(claimed, Claimed):
            return None
        return cls(claimed, Reserve in facts, report)

    @classmethod
    def of_late(cls, ask: Ask[Any], result: Any, report: Report) -> Self | None:
        """A key that was taken is let go of, where the client had left in that moment."""
        return cls(result, False, report) if isinstance(result, Claimed) else None

    @property
    def answered(self) -> bool:
        """Whether the key stands for the answer."""
        return self.claimed.recording.ended(self.report.outcome)

    @property
    def answer(self) -> Answer | None:
        """The answer, where it is one that can be kept."""
        return self.claimed.recording.answer()

    @property
    def given_back(self) -> bool:
        """Whether the cost of one that was not answered is given back when a later one is.

        Who left, or asked for more than can be had in time, pays for what it was given.
        """
        had = self.report.outcome in _WITH_WHAT_IT_HAD and self.report.delivered.counts.begun
        return self.reserved and not had
