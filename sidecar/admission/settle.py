"""The end of a reservation: what was taken and not used goes back, at once, to the balances that it was taken from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sidecar.admission.balances import Balances, Key, Limit
from sidecar.admission.entries import Settlement
from sidecar.admission.reservation import Reservation


def give_back(
    reservation: Reservation,
    settlement: Settlement,
    counted: Mapping[str, int],
    limits: Sequence[Limit],
    balances: Balances,
) -> None:
    """Balance what was reserved with what was used.

    Rates count what the model generated, quotas what is billed (``counted``). A request counts as one, unless the model
    generated nothing and the client is not to blame. ``limits`` are those of today: what is no longer limited is no
    longer counted.
    """
    for key in reservation.balance_keys():
        if key not in balances:
            continue
        if key.kind == "concurrent":
            balances.add(key, -1)
        elif key.kind == "quota":
            billed = counted["input_tokens"] + counted["output_tokens"]
            balances.add(key, billed - reservation.tokens)
        else:
            _give_back_rate(key, _unused(key, reservation, settlement, counted), limits, balances)


def give_back_images(reservation: Reservation, used: int, limits: Sequence[Limit], balances: Balances) -> None:
    """Of the reserved image bytes, give back what was not ``used``."""
    for key in reservation.balance_keys():
        if key.kind == "image_bytes" and key in balances:
            _give_back_rate(key, reservation.image_bytes - used, limits, balances)


def count_difference(difference: Mapping[str, int], reservation: Reservation, balances: Balances) -> None:
    """A correction: quotas count the tokens that were not known of when the reservation was settled."""
    for key in reservation.balance_keys():
        if key.kind == "quota" and key in balances:
            balances.add(key, difference["input_tokens"] + difference["output_tokens"])


def _unused(key: Key, reservation: Reservation, settlement: Settlement, counted: Mapping[str, int]) -> int:
    if key.kind == "requests":
        return 0 if settlement.begun or settlement.outcome == "client_gone" else 1
    if key.kind == "image_bytes":
        return reservation.image_bytes - counted["image_bytes"]
    used = settlement.input_tokens + settlement.generated_tokens if settlement.begun else 0
    return reservation.tokens - used


def _give_back_rate(key: Key, units: int, limits: Sequence[Limit], balances: Balances) -> None:
    limit = next((limit for limit in limits if limit.key == key), None)
    if limit is not None:
        bucket = balances.bucket(limit)
        balances.set_bucket(key, bucket.give_back(units) if units >= 0 else bucket.take(-units))
