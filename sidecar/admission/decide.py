"""The decision: whether a request may begin, and what it takes from its organization's balances. Nothing here waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from sidecar.admission import refusals
from sidecar.admission.accounts import Account
from sidecar.admission.balances import RATES, Balances, Limit
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
        elif limit.key.kind == "image_bytes":
            bucket = balances.bucket(limit)
            image_bytes, image_limit = min(request.image_bytes, bucket.left), limit.limit
            balances.set_bucket(limit.key, bucket.take(image_bytes))
        else:
            balances.set_bucket(limit.key, balances.bucket(limit).take(_needed(limit, request)))
    if applicant.account is not None:
        applicant.account.held += applicant.price
    return Admitted(standing(applicant.limits, balances), image_bytes, image_limit)


def standing(limits: Sequence[Limit], balances: Balances) -> Standing:
    """The buckets that clients are told of."""
    buckets = {limit.key.kind: balances.told(limit) for limit in limits if limit.key.kind in ("requests", "tokens")}
    return Standing(buckets.get("requests"), buckets.get("tokens"))


def most_needed(limit: Limit, request: ReservationRequest) -> int:
    """The units that ``request`` takes if all of them are there."""
    return request.image_bytes if limit.key.kind == "image_bytes" else _needed(limit, request)


def _refusal(applicant: Applicant, balances: Balances) -> Refused | None:
    request, account = applicant.request, applicant.account
    exceeded = [limit for limit in applicant.limits if not _fits(limit, request, balances)]
    covered = account is None or applicant.price <= account.balance - account.held
    if not exceeded and covered:
        return None
    told = standing(applicant.limits, balances)
    found = [_refused_by(limit, request, balances, told) for limit in exceeded]
    if not covered:
        found.append(refusals.credits_exhausted(told))
    return max(found, key=_wait)


def _wait(refusal: Refused) -> float:
    return inf if refusal.retry_after_us is None else refusal.retry_after_us


def _needed(limit: Limit, request: ReservationRequest) -> int:
    if limit.key.kind == "image_bytes":
        # Whatever is there is lent.
        return min(request.image_bytes, 1)
    return request.tokens if limit.key.kind in ("tokens", "user_tokens", "quota") else 1


def _fits(limit: Limit, request: ReservationRequest, balances: Balances) -> bool:
    needed = _needed(limit, request)
    if limit.key.kind in RATES:
        return balances.bucket(limit).wait_for(needed) == 0
    return balances.count(limit.key) + needed <= limit.limit


def _refused_by(limit: Limit, request: ReservationRequest, balances: Balances, told: Standing) -> Refused:
    """The refusal by a limit that ``request`` exceeds."""
    if limit.key.kind == "concurrent":
        return refusals.concurrency_limited(limit, told, request.shown_model)
    needed = _needed(limit, request)
    if limit.key.kind == "quota":
        used = balances.count(limit.key)
        return refusals.quota_exceeded(limit, used, needed, balances.now, told, request.shown_model)
    return refusals.rate_limited(limit, needed, balances.bucket(limit).wait_for(needed), told, request.shown_model)
