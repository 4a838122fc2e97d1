"""Amounts as people and programs read them: exact decimals, from whole nano-units."""

from __future__ import annotations

_NANO = 10**9
_FEWEST_DIGITS = 2


def decimal(nano: int) -> str:
    """An amount in the currency's unit, with two digits after the point or as many more as it takes."""
    whole, rest = divmod(abs(nano), _NANO)
    digits = f"{rest:09}".rstrip("0").ljust(_FEWEST_DIGITS, "0")
    return f"{'-' if nano < 0 else ''}{whole}.{digits}"
