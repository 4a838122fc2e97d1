"""Keys and places for the tests of what is stored."""

from __future__ import annotations

from sidecar.stored.owner import Owner
from sidecar.stored.seals import DataKey, Place

OWNER = Owner("org_a", "support", "production")
PLACE = Place("resp_2", OWNER, "resp_1")
MASTER = bytes(range(32))
OTHER_MASTER = bytes(range(32, 64))


def data_key(number: int = 0) -> DataKey:
    return DataKey(f"dk_{number}", bytes([number]) * 32)
