"""The words of a refusal: what is allowed, and when to come back."""

from __future__ import annotations

from math import ceil

from sidecar.admission.balances import Limit
from sidecar.admission.entries import Refused
from sidecar.admission.limits import ANY
from sidecar.admission.periods import SECOND, Period, end_of, written
from sidecar.admission.standing import Standing

# Nobody knows when a request will end; it is worth a try in a second.
_TRY_AGAIN = SECOND
_UNITS = {"requests": "requests", "tokens": "tokens", "image_bytes": "bytes of remote images"}


def rate_limited(limit: Limit, needed: int, wait: int | None, standing: Standing) -> Refused:
    """Too much in a minute. ``wait`` is in microseconds; ``None`` where the request is too large for any minute."""
    allowed = f"{limit.limit} {_UNITS[limit.key.kind]} per minute allowed on {limit.key.model}"
    if wait is None:
        message = f"{allowed}, fewer than the {needed} that this request needs; it can never be admitted"
        return Refused("rate_limited", message, None, standing)
    return Refused("rate_limited", f"{allowed}; retry in {seconds(wait)}", wait, standing)


def concurrency_limited(limit: Limit, standing: Standing) -> Refused:
    """Too many at a time."""
    allowed = f"{limit.limit} requests at a time allowed{_on(limit)}"
    if not limit.limit:
        return Refused("concurrency_limited", allowed, None, standing)
    return Refused("concurrency_limited", f"{allowed}; retry when one of them has ended", _TRY_AGAIN, standing)


def quota_exceeded(limit: Limit, used: int, needed: int, now: int, standing: Standing) -> Refused:
    """The period's tokens are used up, or fewer are left than the request needs."""
    period: Period = "day" if limit.key.period.count("-") == 2 else "month"
    left = max(0, limit.limit - used)
    message = (
        f"{limit.limit} tokens per {period} allowed{_on(limit)}, of which {left} are left and this request needs "
        f"{needed}; the {period} ends at {written(end_of(period, now))}"
    )
    return Refused("quota_exceeded", message, None, standing)


def credits_exhausted(standing: Standing) -> Refused:
    """The credits do not cover the request."""
    return Refused("credits_exhausted", "The organization's credits do not cover this request", None, standing)


def seconds(microseconds: int) -> str:
    """A time to wait in words, in whole seconds, at least one."""
    count = whole_seconds(microseconds)
    return f"{count} second{'s' if count > 1 else ''}"


def whole_seconds(microseconds: int) -> int:
    """A time to wait in whole seconds, at least one."""
    return max(1, ceil(microseconds / SECOND))


def _on(limit: Limit) -> str:
    return "" if limit.key.model == ANY else f" on {limit.key.model}"
