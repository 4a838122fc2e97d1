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
# Twelve digits before and after the point, times as many tokens as a count can be.
_EXACT = Context(prec=60)


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost from the beginning of ``since`` (UTC) on."""

    since: date
    input: Decimal
    cached_input: Decimal
    output: Decimal

    def of(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> int:
        """The price in nano-units, rounded half to even; ``cached_tokens`` are some of the ``input_tokens``."""
        parts = (
            (input_tokens - cached_tokens, self.input),
            (cached_tokens, self.cached_input),
            (output_tokens, self.output),
        )
        nano = Decimal(0)
        for tokens, price in parts:
            nano = _EXACT.add(nano, _EXACT.multiply(Decimal(tokens * _NANO_PER_TOKEN), price))
        return int(nano.quantize(Decimal(1), ROUND_HALF_EVEN, _EXACT))

    def terms(self, currency: str) -> str:
        """The price as a record keeps it: JSON, with decimals as text."""
        terms = {"from": self.since.isoformat(), "currency": currency}
        prices = {"input": self.input, "cached_input": self.cached_input, "output": self.output}
        return json.dumps({**terms, **{name: format(price, "f") for name, price in prices.items()}})


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
