"""The periods of a quota: days and months of UTC, on the store's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

Period = Literal["day", "month"]

SECOND = 1_000_000
"""In microseconds, as the store keeps times."""
DAY = 86_400 * SECOND


def period_of(period: Period, now: int) -> str:
    """The name of the period that ``now`` (microseconds since the epoch) is in, as ``2026-11-30`` or ``2026-11``."""
    return _moment(now).strftime("%Y-%m-%d" if period == "day" else "%Y-%m")


def end_of(period: Period, now: int) -> int:
    """When the period that ``now`` is in ends: the first microsecond of the next."""
    midnight = _moment(now).replace(hour=0, minute=0, second=0)
    # Of a month, to a day of the next one, whichever that is.
    begin, days = (midnight, 1) if period == "day" else (midnight.replace(day=1), 31)
    end = begin + timedelta(days)
    return int((end if period == "day" else end.replace(day=1)).timestamp()) * SECOND


def written(at: int) -> str:
    """A whole second as ISO 8601 has it, ``2026-12-01T00:00:00Z``."""
    return _moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at // SECOND, UTC)
