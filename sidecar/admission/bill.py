"""What a request is billed: its tokens as they were delivered, at the price of the moment in which it began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidecar.admission.entries import TOKEN_COUNTS, Settlement
from sidecar.admission.prices import PriceList
from sidecar.admission.reservation import Reservation

COUNTS = (*TOKEN_COUNTS, "image_bytes")
"""What a record counts. A record and its correction add up to what was delivered."""

CORRECTION = "-correction"
"""What the id of a correction has beyond the id of what it corrects."""

CARRIED_FORWARD = "carried-forward-"
"""How the ids of those entries of credits begin that stand for records that are no longer kept."""


def counts(reservation: Reservation, settlement: Settlement) -> dict[str, int]:
    """What is billed, by the columns of :data:`COUNTS`: no tokens where the model generated nothing."""
    fetched = reservation.image_bytes if settlement.image_bytes is None else settlement.image_bytes
    if not settlement.begun:
        return {**dict.fromkeys(COUNTS, 0), "image_bytes": fetched}
    tokens = {name: int(getattr(settlement, name)) for name in TOKEN_COUNTS}
    return {**tokens, "image_bytes": fetched}


def price_of(
    reservation: Reservation, counted: Mapping[str, int], prices: PriceList, searches: int = 0
) -> tuple[int, str]:
    """The price in nano-units, and its terms, which hold the ``searches`` too, where they have a price."""
    price = prices.find(reservation.model, reservation.created_at)
    if price is None:
        return 0, "{}"
    amount = price.of(counted["input_tokens"], counted["cached_tokens"], counted["output_tokens"], searches)
    return amount, price.terms(prices.currency, searches)


def record(
    reservation: Reservation,
    settlement: Settlement,
    counted: Mapping[str, int],
    price: tuple[int, str],
    *,
    now: int,
) -> dict[str, Any]:
    """The usage record of a settlement."""
    return {
        "id": reservation.id,
        "request_id": reservation.request_id,
        "organization_id": reservation.organization_id,
        "credential_id": reservation.credential_id,
        "model": reservation.model,
        "node": reservation.node,
        **counted,
        "price": price[0],
        "price_terms": price[1],
        "outcome": settlement.outcome,
        "stream": bool(reservation.stream),
        "started_at": reservation.created_at,
        "first_token_ms": settlement.first_token_ms,
        "total_ms": settlement.total_ms,
        "end_user": reservation.end_user,
        "tags": reservation.tags,
        "created_at": now,
        "session": reservation.session,
        "attempts": settlement.attempts,
    }


def correction(whole: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record of what ``whole`` has beyond the record that was made in its place; ``None`` where they agree."""
    difference = {name: whole[name] - earlier[name] for name in (*COUNTS, "price")}
    if not any(difference.values()):
        return None
    return {**whole, **difference, "id": whole["id"] + CORRECTION}
