"""What tokens cost: decimal prices per million tokens, each from a date on; never a float.

Amounts are whole nano-units, billionths of the currency's unit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal

from sidecar.admission.periods import SECOND

# A price per million tokens, in nano-units of one token.
_NANO_PER_TOKEN = 1000
_NANO = 10**9
# Twelve digits before and after the point, times as many tokens as a count can be.
_EXACT = Context(prec=60)


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, and one web search, from the beginning of ``since`` (UTC) on."""

    since: date
    input: Decimal
    cached_input: Decimal
    output: Decimal
    per_search: Decimal = Decimal(0)

    def of(self, input_tokens: int, cached_tokens: int, output_tokens: int, searches: int = 0) -> int:
        """The price in nano-units, rounded half to even; ``cached_tokens`` are some of the ``input_tokens``."""
        parts = (
            (input_tokens - cached_tokens, self.input),
            (cached_tokens, self.cached_input),
            (output_tokens, self.output),
        )
        nano = _EXACT.multiply(Decimal(searches * _NANO), self.per_search)
        for tokens, price in parts:
            nano = _EXACT.add(nano, _EXACT.multiply(Decimal(tokens * _NANO_PER_TOKEN), price))
        return int(nano.quantize(Decimal(1), ROUND_HALF_EVEN, _EXACT))

    def terms(self, currency: str, searches: int = 0) -> str:
        """The price as a record keeps it: JSON, with decimals as text; with ``searches``, where each has a price."""
        terms: dict[str, str | int] = {"from": self.since.isoformat(), "currency": currency}
        prices = {"input": self.input, "cached_input": self.cached_input, "output": self.output}
        terms |= {name: format(price, "f") for name, price in prices.items()}
        if searches and self.per_search:
            terms |= {"per_search": format(self.per_search, "f"), "searches": searches}
        return json.dumps(terms)


class PriceList:
    """The prices of all models, by name."""

    def __init__(self, prices: Mapping[str, Iterable[Price]], currency: str = "USD") -> None:
        self.currency = currency
        # The latest first.
        self._prices = {model: sorted(of, key=lambda price: price.since, reverse=True) for model, of in prices.items()}

    def find(self, model: str, at: int) -> Price | None:
        """The price of ``model`` at the time ``at``, microseconds since the epoch; ``None`` where it costs nothing."""
        prices = self._prices.get(model)
        if not prices:
            return None
        day = datetime.fromtimestamp(at // SECOND, UTC).date()
        return next((price for price in prices if price.since <= day), None)
