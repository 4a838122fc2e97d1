"""A ledger on a store, and what its tests ask it for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any

from sqlalchemy import Connection, text

from sidecar.admission.entries import Admitted, Entry, ImagesFetched, Outcome, ReservationRequest, Settlement
from sidecar.admission.ledger import Ledger
from sidecar.admission.limits import Limits
from sidecar.admission.prices import Price, PriceList
from sidecar.admission.terms import TermsReader
from sidecar.store import connect

MODEL = "b3os/scripted"
PRICE = Price(date(2020, 1, 1), Decimal("0.15"), Decimal("0.075"), Decimal("0.60"))
FREE = PriceList({})
PRICED = PriceList({MODEL: [PRICE]})

_numbers = count(1)


def ledger(defaults: Limits | None = None, prices: PriceList = FREE) -> Ledger:
    return Ledger(prices, TermsReader(defaults or Limits(), seconds=0))


def request(**changed: Any) -> ReservationRequest:
    number = next(_numbers)
    values: dict[str, Any] = {
        "id": f"r{number:025}",
        "request_id": f"request-{number}",
        "organization_id": "org_a",
        "model": MODEL,
        "node": "n1",
        "worker": "w1",
        "input_tokens": 10,
        "output_tokens": 90,
    }
    return ReservationRequest(**{**values, **changed})


def completed(id: str, *, input_tokens: int = 10, output_tokens: int = 5, **changed: Any) -> Settlement:
    values: dict[str, Any] = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "generated_tokens": output_tokens,
    }
    return Settlement(id, "completed", begun=True, **{**values, **changed})


def refused_by_the_model(id: str) -> Settlement:
    return Settlement(id, "infer_backend_unavailable", begun=False)


class Books:
    """A ledger, one transaction for each call."""

    def __init__(self, url: str, defaults: Limits | None = None, prices: PriceList = FREE) -> None:
        self.url = url
        self.ledger = ledger(defaults, prices)

    def book(self, *entries: Entry) -> list[Outcome]:
        with connect(self.url) as connection:
            outcomes = self.ledger.perform(connection, entries)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]

    def reserve(self, **changed: Any) -> tuple[ReservationRequest, Outcome]:
        asked = request(**changed)
        return asked, self.book(asked)[0]

    def admit(self, **changed: Any) -> ReservationRequest:
        asked, outcome = self.reserve(**changed)
        assert isinstance(outcome, Admitted), outcome
        return asked

    def fetched(self, id: str, used: int) -> None:
        self.book(ImagesFetched(id, used))

    def rows(self, table: str) -> list[Mapping[str, Any]]:
        with connect(self.url) as connection:
            return [row._asdict() for row in connection.execute(text(f"SELECT * FROM {table} ORDER BY 1"))]

    def execute(self, sql: str, **values: Any) -> None:
        with connect(self.url) as connection:
            connection.execute(text(sql), values)

    def records(self) -> list[Mapping[str, Any]]:
        return self.rows("usage_records")

    def open(self) -> int:
        return sum(row["settled_at"] is None for row in self.rows("reservations"))

    def level(self, kind: str, model: str = MODEL) -> int:
        (row,) = [row for row in self.rows("balances") if (row["kind"], row["model"]) == (kind, model)]
        return int(row["level"])


def statements_of(connection: Connection) -> list[str]:
    """The statements that ``connection`` executes from now on."""
    from sqlalchemy import event

    executed: list[str] = []

    @event.listens_for(connection, "before_cursor_execute")
    def note(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool) -> None:
        executed.append(statement)

    return executed
