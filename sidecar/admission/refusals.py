"""The words of a refusal: what is allowed, and when to come back; ``model`` is what the client is told it is called."""

from __future__ import annotations

from math import ceil

from sidecar.admission.balances import OF_USERS, Limit
from sidecar.admission.entries import Refused
from sidecar.admission.limits import ANY
from sidecar.admission.periods import SECOND, Period, end_of, written
from sidecar.admission.standing import Standing

# Nobody knows when a request will end; it is worth a try in a second.
_TRY_AGAIN = SECOND
_UNITS = {
    "requests": ("request", ""),
    "tokens": ("token", ""),
    "image_bytes": ("byte", " of remote images"),
    "user_requests": ("request", ""),
    "user_tokens": ("token", ""),
}


def rate_limited(limit: Limit, needed: int, wait: int | None, standing: Standing, model: str) -> Refused:
    """Too much in a minute. ``wait`` is in microseconds; ``None`` where the request is too large for any minute."""
    unit, of_what = _UNITS[limit.key.kind]
    whom = "to an end user" if limit.key.kind in OF_USERS else f"on {model}"
    allowed = f"{_count(limit.limit, unit)}{of_what} per minute allowed {whom}"
    if wait is None:
        message = f"{allowed}, fewer than the {needed} that this request needs; it can never be admitted"
        return Refused("rate_limited", message, None, standing)
    return Refused("rate_limited", f"{allowed}; retry in {seconds(wait)}", wait, standing)


def concurrency_limited(limit: Limit, standing: Standing, model: str) -> Refused:
    """Too many at a time."""
    allowed = f"{_count(limit.limit, 'request')} at a time allowed{_on(limit, model)}"
    if not limit.limit:
        return Refused("concurrency_limited", allowed, None, standing)
    ended = "it" if limit.limit == 1 else "one of them"
    return Refused("concurrency_limited", f"{allowed}; retry when {ended} has ended", _TRY_AGAIN, standing)


def quota_exceeded(limit: Limit, used: int, needed: int, now: int, standing: Standing, model: str) -> Refused:
    """The period's tokens are used up, or fewer are left than the request needs."""
    period: Period = "day" if limit.key.period.count("-") == 2 else "month"
    left = max(0, limit.limit - used)
    are_left = f"{left} {'is' if left == 1 else 'are'} left"
    message = (
        f"{_count(limit.limit, 'token')} per {period} allowed{_on(limit, model)}, of which {are_left} and this request "
        f"needs {needed}; the {period} ends at {written(end_of(period, now))}"
    )
    return Refused("quota_exceeded", message, None, standing)


def credits_exhausted(standing: Standing) -> Refused:
    """The credits do not cover the request."""
    return Refused("credits_exhausted", "The organization's credits do not cover this request", None, standing)


def seconds(microseconds: int) -> str:
    """A time to wait in words, in whole seconds, at least one."""
    return _count(whole_seconds(microseconds), "second")


def whole_seconds(microseconds: int) -> int:
    """A time to wait in whole seconds, at least one."""
    return max(1, ceil(microseconds / SECOND))


def _count(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _on(limit: Limit, model: str) -> str:
    return "" if limit.key.model == ANY else f" on {model}"
