"""Amounts as text are exact, and read back as what they were."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.admission.money import decimal


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (0, "0.00"),
        (1, "0.000000001"),
        (-1, "-0.000000001"),
        (1_500_000_000, "1.50"),
        (25_000_000_000, "25.00"),
        (-10_123_456_789, "-10.123456789"),
    ],
)
def test_amounts(nano: int, text: str) -> None:
    assert decimal(nano) == text


@given(st.integers(-(2**70), 2**70))
def test_an_amount_reads_back(nano: int) -> None:
    assert Decimal(decimal(nano)) * 10**9 == nano
