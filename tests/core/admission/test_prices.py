"""Prices in decimal: by date, per record, rounded half to even, and exact at any size."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.admission.prices import Price, PriceList

OLD = Price(date(2026, 1, 1), Decimal("0.15"), Decimal("0.075"), Decimal("0.60"))
NEW = Price(date(2026, 12, 1), Decimal("0.2"), Decimal("0.1"), Decimal("0.8"))
DAY = 86_400 * 1_000_000
DECEMBER = 1_796_083_200 * 1_000_000

tokens = st.integers(0, 10**9)
amounts = st.decimals(min_value=0, max_value=999_999, places=12, allow_nan=False, allow_infinity=False)


def test_a_million_tokens_cost_their_price() -> None:
    assert OLD.of(10**6, 0, 0) == 150_000_000
    assert OLD.of(10**6, 10**6, 0) == 75_000_000
    assert OLD.of(0, 0, 10**6) == 600_000_000


@pytest.mark.parametrize(
    ("price", "count", "nano"), [("0.0005", 1, 0), ("0.0015", 1, 2), ("0.0025", 1, 2), ("0.00250001", 1, 3)]
)
def test_halves_are_rounded_to_even(price: str, count: int, nano: int) -> None:
    assert Price(date(2026, 1, 1), Decimal(price), Decimal(0), Decimal(0)).of(count, 0, 0) == nano


@given(amounts, amounts, amounts, tokens, tokens, tokens)
def test_prices_are_exact_to_half_a_nano_unit(
    of_input: Decimal, of_cached: Decimal, of_output: Decimal, fresh: int, cached: int, output: int
) -> None:
    price = Price(date(2026, 1, 1), of_input, of_cached, of_output)
    exact = (fresh * Fraction(of_input) + cached * Fraction(of_cached) + output * Fraction(of_output)) * 1000
    assert abs(price.of(fresh + cached, cached, output) - exact) <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("at", "expected"),
    [(DECEMBER, NEW), (DECEMBER - 1, OLD), (DECEMBER + 400 * DAY, NEW), (DECEMBER - 400 * DAY, None)],
)
def test_the_price_of_the_day_holds(at: int, expected: Price | None) -> None:
    prices = PriceList({"m": [OLD, NEW]})
    assert prices.find("m", at) == expected
    assert prices.find("another", at) is None


def test_the_terms_are_kept_as_text() -> None:
    assert json.loads(OLD.terms("EUR")) == {
        "from": "2026-01-01",
        "currency": "EUR",
        "input": "0.15",
        "cached_input": "0.075",
        "output": "0.60",
    }
    assert (
        json.loads(Price(OLD.since, Decimal("0.00000001"), OLD.input, OLD.output).terms("EUR"))["input"] == "0.00000001"
    )


def test_each_search_has_a_price_of_its_own() -> None:
    price = Price(date(2026, 1, 1), Decimal(1), Decimal(1), Decimal(1), Decimal("0.01"))
    assert price.of(10, 0, 5) == 15_000
    assert price.of(10, 0, 5, searches=3) == 15_000 + 30_000_000
    assert {"per_search": "0.01", "searches": 3}.items() <= json.loads(price.terms("USD", 3)).items()
    for terms in (price.terms("USD"), OLD.terms("USD", 3)):
        assert not {"per_search", "searches"} & json.loads(terms).keys()
