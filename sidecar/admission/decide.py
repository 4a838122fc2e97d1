"""The decision: whether a request may begin, and what it takes from its organization's balances. Nothing here waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from sidecar.admission import refusals
from sidecar.admission.accounts import Account
from sidecar.admission.balances import Balances, Limit
from sidecar.admission.entries import Admitted, Refused, ReservationRequest
from sidecar.admission.standing import Standing


@dataclass(frozen=True, slots=True)
class Applicant:
    """A request, the ``limits`` that hold for it, and its price as estimated, in nano-units.

    ``account`` is where that is held; ``None`` for an organization that pays afterwards.
    """

    request: ReservationRequest
    limits: Sequence[Limit]
    price: int = 0
    account: Account | None = None


def decide(applicant: Applicant, balances: Balances) -> Admitted | Refused:
    """Admit or refuse a request. Whoever is admitted has been given everything, whoever is refused nothing.

    Of several reasons to refuse, the client is told the one that lasts longest, and of those that waiting does not mend
    the first in the order of the limits; credits come last.
    """
    refusal = _refusal(applicant, balances)
    if refusal is not None:
        return refusal
    request = applicant.request
    image_bytes = image_limit = None
    for limit in applicant.limits:
        if limit.key.kind == "concurrent":
            balances.add(limit.key, 1)
        elif limit.key.kind == "quota":
            balances.add(limit.key, request.tokens)
        else:
            bucket = balances.bucket(limit)
            units = {"requests": 1, "tokens": request.tokens, "image_bytes": min(request.image_bytes, bucket.left)}
            if limit.key.kind == "image_bytes":
                image_bytes, image_limit = units["image_bytes"], limit.limit
            balances.set_bucket(limit.key, bucket.take(units[limit.key.kind]))
    if applicant.account is not None:
        applicant.account.held += applicant.price
    return Admitted(standing(applicant.limits, balances), image_bytes, image_limit)


def standing(limits: Sequence[Limit], balances: Balances) -> Standing:
    """The buckets that clients are told of."""
    buckets = {limit.key.kind: balances.bucket(limit) for limit in limits if limit.key.kind in ("requests", "tokens")}
    return Standing(buckets.get("requests"), buckets.get("tokens"))


def _refusal(applicant: Applicant, balances: Balances) -> Refused | None:
    told = standing(applicant.limits, balances)
    found = (_refusal_by(limit, applicant.request, balances, told) for limit in applicant.limits)
    refusals_found = [refusal for refusal in found if refusal is not None]
    account = applicant.account
    if account is not None and applicant.price > account.balance - account.held:
        refusals_found.append(refusals.credits_exhausted(told))
    return max(refusals_found, key=_wait, default=None)


def _wait(refusal: Refused) -> float:
    return inf if refusal.retry_after_us is None else refusal.retry_after_us


def _refusal_by(limit: Limit, request: ReservationRequest, balances: Balances, told: Standing) -> Refused | None:
    if limit.key.kind == "concurrent":
        full = balances.count(limit.key) >= limit.limit
        return refusals.concurrency_limited(limit, told) if full else None
    if limit.key.kind == "quota":
        used = balances.count(limit.key)
        over = used + request.tokens > limit.limit
        return refusals.quota_exceeded(limit, used, request.tokens, balances.now, told) if over else None
    needed = {"requests": 1, "tokens": request.tokens, "image_bytes": min(request.image_bytes, 1)}[limit.key.kind]
    wait = balances.bucket(limit).wait_for(needed)
    return None if wait == 0 else refusals.rate_limited(limit, needed, wait, told)
