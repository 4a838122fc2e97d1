"""Token buckets in whole numbers: what an organization may still take, and how it fills up again.

A level counts micro-units, millionths of a request, token or byte, and times are microseconds: a limit of ``n`` per
minute adds ``n / 60`` micro-units each microsecond. A bucket's capacity is its limit, one minute's worth.
"""

from __future__ import annotations

from dataclasses import dataclass

MICRO = 1_000_000
_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Bucket:
    """``limit`` units per minute; ``level`` micro-units are left as of ``updated_at``."""

    limit: int
    level: int
    updated_at: int

    @property
    def capacity(self) -> int:
        """The highest level, in micro-units."""
        return self.limit * MICRO

    @property
    def left(self) -> int:
        """Whole units that can be taken."""
        return max(0, self.level // MICRO)

    def at(self, now: int) -> Bucket:
        """The bucket at the time ``now``.

        A clock that went back adds nothing, and counts from there: a jump forward gives at most one full bucket. What
        does not add up to a micro-unit is not lost: that time is left for later.
        """
        elapsed = now - self.updated_at
        if elapsed < 0:
            return Bucket(self.limit, min(self.level, self.capacity), now)
        gained = elapsed * self.limit // _MINUTE
        if self.level + gained >= self.capacity:
            return Bucket(self.limit, self.capacity, now)
        # Rounded up, so that no moment is counted twice.
        counted = -(-gained * _MINUTE // self.limit) if gained else 0
        return Bucket(self.limit, self.level + gained, self.updated_at + counted)

    def take(self, units: int) -> Bucket:
        """Less ``units``, as they are: whether they fit is asked before. What was used beyond a reservation may make
        the level negative."""
        return Bucket(self.limit, self.level - units * MICRO, self.updated_at)

    def give_back(self, units: int) -> Bucket:
        """``units`` more, never above the capacity."""
        return Bucket(self.limit, min(self.level + units * MICRO, self.capacity), self.updated_at)

    def wait_for(self, units: int) -> int | None:
        """In how many microseconds ``units`` can be taken; ``None`` if they never fit."""
        if units > self.limit:
            return None
        return self._wait(units * MICRO)

    @property
    def until_full(self) -> int:
        """In how many microseconds the bucket will be full."""
        return self._wait(self.capacity)

    def _wait(self, level: int) -> int:
        missing = level - self.level
        # A limit of 0 never fills: nothing waits for that.
        return -(-missing * _MINUTE // self.limit) if missing > 0 and self.limit else 0
