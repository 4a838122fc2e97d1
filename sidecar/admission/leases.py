"""Leases: what one worker has taken from a balance ahead of its requests, for a few seconds. Nothing here waits.

A lease has been taken from its balance as a reservation takes: so balances and leases together give out no more than
the limit, whoever holds what. The price is that what lies in one worker's lease is not there for others: at most
:func:`most`, for as long as the lease lasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sidecar.admission.balances import RATES, Key, Level, Limit
from sidecar.admission.buckets import MICRO
from sidecar.admission.periods import SECOND

# What part of a limit a worker holds at most: many share it. A quota's refusal says that waiting does not help, so that
# little of it may lie elsewhere.
_PART, _PART_OF_QUOTA = 8, 64


class Lease(NamedTuple):
    """``level`` may still be given out, in micro-units of a rate, else a count, until ``expires_at``.

    ``rest`` is the balance's level at ``rest_at``, when the worker last saw it: clients are told of both.
    """

    level: int
    expires_at: int
    rest: Level


@dataclass(slots=True)
class Flow:
    """What one transaction does with a balance, in its units: ``given`` back by settlements, ``taken`` by those that
    used more than had been reserved, and ``wanted`` by requests."""

    given: int = 0
    taken: int = 0
    wanted: int = 0


def most(limit: Limit, seconds: int) -> int:
    """The highest level of a lease of ``seconds``: a part of the limit, of a rate no more than fills up meanwhile."""
    whole = limit.limit * _scale(limit.key)
    if limit.key.kind in RATES:
        return min(whole // _part(limit.key), whole * seconds // 60)
    return whole // _part(limit.key)


def slice_of(limit: Limit, left: int, wanted: int, seconds: int) -> int:
    """How much to lease where ``left`` is left: half of the most, so that refunds have room, and a part of what is
    left, so that others find some too.

    0 where that is less than ``wanted``, the units that just came at once: it would not do the next time.
    """
    size = min(most(limit, seconds) // 2, max(0, left) // _part(limit.key))
    return size if size >= wanted * _scale(limit.key) else 0


def suffices(lease: Lease, limit: Limit, flow: Flow, now: int, seconds: int) -> bool:
    """Whether a transaction can do without the balance itself: the lease has not run out, holds what is wanted, and
    does not become too large. A lease that would last for longer than ``seconds`` is of before the clock went back."""
    if not now < lease.expires_at <= now + seconds * SECOND:
        return False
    scale = _scale(limit.key)
    before = lease.level - flow.taken * scale
    wanted = flow.wanted * scale
    return (
        wanted <= before + flow.given * scale
        and lease.level + flow.given * scale <= limit.limit * scale
        and before + flow.given * scale - wanted <= most(limit, seconds)
    )


def seen_as(lease: Lease, limit: Limit, now: int) -> Level:
    """A lease as the balance that requests are decided on."""
    return Level(lease.level if limit.key.kind in RATES else limit.limit - lease.level, now)


def left_in(limit: Limit, level: Level) -> int:
    """What is left of a balance, or of a lease that is seen as one; the inverse of :func:`seen_as`."""
    return level.level if limit.key.kind in RATES else limit.limit - level.level


def moved(key: Key, balance: Level, amount: int) -> Level:
    """The balance that ``amount`` of a lease is given back to; taken from, if it is negative.

    A rate may stand above its capacity then, which its bucket does not believe when it is looked at next.
    """
    return Level(balance.level + (amount if key.kind in RATES else -amount), balance.updated_at)


def _scale(key: Key) -> int:
    return MICRO if key.kind in RATES else 1


def _part(key: Key) -> int:
    return _PART_OF_QUOTA if key.kind == "quota" else _PART
