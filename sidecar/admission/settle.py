"""The end of a reservation: what was taken and not used goes back, at once, to the balances that it was taken from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sidecar.admission.balances import RATES, Balances, Key, Limit
from sidecar.admission.entries import Settlement
from sidecar.admission.reservation import Reservation


def unused(reservation: Reservation, settlement: Settlement, counted: Mapping[str, int]) -> Iterator[tuple[Key, int]]:
    """What goes back to each balance, in its units; negative where more was used than had been reserved.

    Rates count what the model generated, quotas what is billed (``counted``). A request counts as one, unless the model
    generated nothing and the client is not to blame.
    """
    for key in reservation.balance_keys():
        if key.kind == "concurrent":
            yield key, 1
        elif key.kind == "quota":
            yield key, reservation.tokens - counted["input_tokens"] - counted["output_tokens"]
        elif key.kind in ("requests", "user_requests"):
            yield key, 0 if settlement.begun or settlement.outcome == "client_gone" else 1
        elif key.kind == "image_bytes":
            yield key, reservation.image_bytes - counted["image_bytes"]
        else:
            used = settlement.input_tokens + settlement.generated_tokens if settlement.begun else 0
            yield key, reservation.tokens - used


def unused_images(reservation: Reservation, used: int) -> Iterator[tuple[Key, int]]:
    """Of the reserved image bytes, what was not ``used``."""
    for key in reservation.balance_keys():
        if key.kind == "image_bytes":
            yield key, reservation.image_bytes - used


def difference(correction: Mapping[str, int], reservation: Reservation) -> Iterator[tuple[Key, int]]:
    """A correction: quotas count the tokens that were not known of when the reservation was settled."""
    for key in reservation.balance_keys():
        if key.kind == "quota":
            yield key, -correction["input_tokens"] - correction["output_tokens"]


def give_back(key: Key, units: int, limits: Sequence[Limit], balances: Balances) -> None:
    """Give ``units`` back to a balance, or take more. ``limits`` are those of today: what is no longer limited is no
    longer counted."""
    if key not in balances:
        return
    if key.kind not in RATES:
        balances.add(key, -units)
        return
    own = key.own_limit
    limit = Limit(key, own) if own is not None else next((limit for limit in limits if limit.key == key), None)
    if limit is not None:
        bucket = balances.bucket(limit)
        balances.set_bucket(key, bucket.give_back(units) if units >= 0 else bucket.take(-units))
