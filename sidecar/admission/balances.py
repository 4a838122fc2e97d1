"""The balances of organizations: what a reservation takes from them, and what a settlement gives back.

Of requests, tokens and image bytes per minute a balance is what is left, in a bucket; of concurrent requests it is how
many are under way; of a quota it is how many tokens have been used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sidecar.admission.buckets import MICRO, Bucket
from sidecar.admission.limits import ANY, Applied
from sidecar.admission.periods import period_of

Rate = Literal["requests", "tokens", "image_bytes"]
UserRate = Literal["user_requests", "user_tokens"]
Kind = Rate | UserRate | Literal["concurrent", "quota"]

OF_MODELS: tuple[Rate, ...] = ("requests", "tokens", "image_bytes")
"""Rates that count each model by itself."""
OF_USERS: tuple[UserRate, ...] = ("user_requests", "user_tokens")
"""Rates that count an end user, over all models."""
RATES = (*OF_MODELS, *OF_USERS)


class Key(NamedTuple):
    """Names one balance. Sorted, keys are in the order in which rows are locked.

    ``period`` is that of a quota. Of an end user's rates it names the user, and the limit after a slash.
    """

    organization_id: str
    model: str
    kind: Kind
    period: str = ""

    @property
    def own_limit(self) -> int | None:
        """The limit, where the key itself has it."""
        return int(self.period.rpartition("/")[2]) if self.kind in OF_USERS else None


class Level(NamedTuple):
    """One balance: micro-units of a rate, else a count; ``updated_at`` matters to rates alone."""

    level: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit that holds for a request, and the balance that it is kept in."""

    key: Key
    limit: int

    def bucket(self, level: Level) -> Bucket:
        """The balance of a rate."""
        return Bucket(self.limit, *level)

    def start(self, now: int) -> Level:
        """The balance of whoever has taken nothing yet."""
        return Level(self.limit * MICRO if self.key.kind in RATES else 0, now)


def limits_of(organization: str, model: str, applied: Applied, now: int) -> Iterator[Limit]:
    """The limits that hold for a request, in the order in which they are looked at."""
    scopes = ((ANY, applied.on_all), (model, applied.on_model))
    for scope, limits in scopes:
        if limits.concurrent_requests is not None:
            yield Limit(Key(organization, scope, "concurrent"), limits.concurrent_requests)
    rates = (applied.rates.requests_per_minute, applied.rates.tokens_per_minute, applied.rates.image_bytes_per_minute)
    for kind, limit in zip(OF_MODELS, rates, strict=True):
        if limit is not None:
            yield Limit(Key(organization, model, kind), limit)
    for scope, limits in scopes:
        if limits.period is not None and limits.period_tokens is not None:
            yield Limit(Key(organization, scope, "quota", period_of(limits.period, now)), limits.period_tokens)


class Balances:
    """The balances that one transaction works on, as of ``now`` on the store's clock.

    Of a balance in ``rests`` the level is that of a lease, beside which there is a rest.
    """

    def __init__(self, levels: Mapping[Key, Level], now: int, rests: Mapping[Key, Level] | None = None) -> None:
        self._levels = dict(levels)
        self._before = dict(levels)
        self._rests = rests or {}
        self.now = now

    def __contains__(self, key: Key) -> bool:
        return key in self._levels

    def bucket(self, limit: Limit) -> Bucket:
        """A rate's bucket, filled up until now."""
        return limit.bucket(self._levels[limit.key]).at(self.now)

    def told(self, limit: Limit) -> Bucket:
        """A rate's bucket as clients are told of it: with the rest, where there is one."""
        bucket = self.bucket(limit)
        rest = self._rests.get(limit.key)
        if rest is None:
            return bucket
        whole = limit.bucket(rest).at(self.now)
        return Bucket(limit.limit, min(whole.capacity, whole.level + bucket.level), self.now)

    def level(self, key: Key) -> Level:
        """A balance as it is now."""
        return self._levels[key]

    def count(self, key: Key) -> int:
        """How many are under way, or have been used."""
        return self._levels[key].level

    def set_bucket(self, key: Key, bucket: Bucket) -> None:
        """A rate's new balance."""
        self._levels[key] = Level(bucket.level, bucket.updated_at)

    def add(self, key: Key, count: int) -> None:
        """``count`` more are under way or used, fewer if it is negative; never fewer than none."""
        self._levels[key] = Level(max(0, self._levels[key].level + count), self.now)

    def changed(self) -> dict[Key, Level]:
        """The balances that are no longer what they were, in the order of their keys."""
        return {key: level for key, level in sorted(self._levels.items()) if level != self._before[key]}
