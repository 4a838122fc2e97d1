"""Receipts on both engines: what they tell is what the ledger holds, and nobody else's is seen."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from sqlalchemy import event, text

from sidecar.admission.entries import Refused, ReservationRequest, Settlement
from sidecar.admission.limits import Limits
from sidecar.admission.prices import PriceList
from sidecar.admission.receipts import Log, read_log, read_receipt
from sidecar.admission.reconcile import reconcile
from sidecar.admission.refused import MOST_A_MINUTE, NoteRefusals, Refusal, RefusedLog
from sidecar.exchange.report import Attempt
from sidecar.responses.errors import ApiError
from sidecar.responses.page import Page
from sidecar.store import Store, connect
from sidecar.surfaces.bureau.receipts import RECEIPT_SCHEMAS
from tests.store.ledger_kit import MODEL, PRICE, PRICED, Books, completed, request, statements_of

PLACE = {"organization_id": "org_a", "project": "support", "environment": "production"}
LOG = Log("org_a", "support", "production")
ATTEMPTS = [{"route": "triton", "outcome": "completed", "status": None, "ms": None}]


def receipt(books: Books, request_id: str, log: Log = LOG) -> Any:
    with connect(books.url, "read") as connection:
        return read_receipt(connection, log, request_id)


def page(url: str, page: Page, log: Log = LOG) -> Any:
    with connect(url, "read") as connection:
        return read_log(connection, log, page)


def check(told: Any, name: str = "Request") -> None:
    """Look whether ``told`` is what the OpenAPI document says, and nothing beyond that."""
    whole = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": RECEIPT_SCHEMAS}}
    Draft202012Validator(whole).validate(told)
    assert told.keys() <= RECEIPT_SCHEMAS[name]["properties"].keys()


def test_receipts_are_what_the_document_says(store_url: str) -> None:
    books = Books(store_url, prices=PriceList({MODEL: [replace(PRICE, per_search=Decimal(1))]}))
    done, _, refused = books.admit(**PLACE, searches=1), books.admit(**PLACE), request(**PLACE)
    attempt = Attempt("up", "rate_limited", 429, 3)
    books.book(completed(done.id, searches=1, attempts=json.dumps([asdict(attempt)])))
    refuse(books, refused)
    listed = page(store_url, Page())
    check(listed, "RequestList")
    assert {one["outcome"] for one in listed["data"]} == {"completed", "in_progress", "rate_limited"}
    for one in listed["data"]:
        check(one)
        check(one["timings"], "RequestTimings")
    told = receipt(books, done.request_id)
    check(told["attempts"][0], "RequestAttempt")
    check(told["usage"], "RequestUsage")
    check(told["price"], "RequestPrice")


def refuse(books: Books, *refused: ReservationRequest) -> None:
    with connect(books.url) as connection:
        NoteRefusals().perform(connection, [Refusal(one, "rate_limited") for one in refused])


def test_a_receipt_tells_what_the_ledger_holds(store_url: str) -> None:
    books = Books(store_url, prices=PRICED)
    asked = books.admit(
        **PLACE,
        credential_id="prk_1",
        end_user="ada",
        tags="a,b",
        session="talk",
        client_request_id="mine",
        told_model="vendor/small",
        endpoint="responses",
        stream=True,
    )
    running = receipt(books, asked.request_id)
    assert (running["outcome"], running["usage"], running["price"], running["charge"]) == (
        "in_progress",
        None,
        None,
        None,
    )
    books.book(
        completed(
            asked.id,
            cached_tokens=4,
            reasoning_tokens=2,
            first_token_ms=20,
            total_ms=45,
            attempts=json.dumps(ATTEMPTS),
        )
    )
    told = receipt(books, asked.request_id)
    started = told["timings"].pop("started_at")
    assert started.startswith("20") and started.endswith("Z")
    assert told.pop("created_at") > 1_700_000_000
    assert told == {
        "id": asked.request_id,
        "object": "request",
        "endpoint": "responses",
        "response_id": f"resp_{asked.id}",
        "client_request_id": "mine",
        "model": "vendor/small",
        "route": "triton",
        "attempts": ATTEMPTS,
        "stream": True,
        "outcome": "completed",
        "usage": {"input_tokens": 10, "cached_tokens": 4, "output_tokens": 5, "reasoning_tokens": 2},
        "price": {"from": "2020-01-01", "currency": "USD", "input": "0.15", "cached_input": "0.075", "output": "0.60"},
        "hold": "0.00",
        "charge": "0.0000042",
        "timings": {"first_token_ms": 20, "total_ms": 45},
        "organization": "org_a",
        "project": "support",
        "environment": "production",
        "key": "prk_1",
        "end_user": "ada",
        "tags": ["a", "b"],
        "session": "talk",
    }
    assert PRICE.of(10, 4, 5) == 4200


def test_searches_are_held_for_and_charged_as_they_were_made(store_url: str) -> None:
    prices = PriceList({MODEL: [replace(PRICE, per_search=Decimal("0.01"))]})
    books = Books(store_url, prices=prices)
    books.execute("INSERT INTO organizations (id, name, prepaid, created_at) VALUES ('org_a', 'a', true, 0)")
    books.execute("INSERT INTO accounts (organization_id, balance, held) VALUES ('org_a', 40000000, 0)")
    asked = books.admit(**PLACE, searches=3)
    assert receipt(books, asked.request_id)["hold"] == "0.0300555"
    assert isinstance(books.reserve(**PLACE, searches=1)[1], Refused)
    books.book(completed(asked.id, searches=2))
    told = receipt(books, asked.request_id)
    assert told["charge"] == "0.0200045"
    assert (told["price"]["per_search"], told["price"]["searches"]) == ("0.01", 2)
    (account,) = books.rows("accounts")
    assert (account["balance"], account["held"]) == (40_000_000 - 20_004_500, 0)
    failed = books.admit(**PLACE, searches=1)
    books.book(Settlement(failed.id, "infer_backend_unavailable", begun=False, searches=1))
    assert receipt(books, failed.request_id)["charge"] == "0.00"


def test_what_was_corrected_is_added(store_url: str) -> None:
    books = Books(store_url, prices=PRICED)
    asked = books.admit(**PLACE)
    books.book(completed(asked.id, output_tokens=3, final=False))
    books.book(completed(asked.id, output_tokens=8))
    told = receipt(books, asked.request_id)
    assert (told["usage"]["output_tokens"], told["usage"]["input_tokens"]) == (8, 10)
    assert told["charge"] == "0.0000063"


def test_the_hold_is_what_was_held(store_url: str) -> None:
    books = Books(store_url, prices=PRICED)
    books.execute("INSERT INTO organizations (id, name, prepaid, created_at) VALUES ('org_a', 'a', true, 0)")
    books.execute("INSERT INTO accounts (organization_id, balance, held) VALUES ('org_a', 1000000000, 0)")
    asked = books.admit(**PLACE)
    assert receipt(books, asked.request_id)["hold"] == "0.0000555"
    assert books.rows("accounts")[0]["held"] == 55_500


@pytest.mark.parametrize("member", PLACE)
def test_another_s_is_not_seen(store_url: str, member: str) -> None:
    books = Books(store_url)
    mine, theirs = books.admit(**PLACE), books.admit(**{**PLACE, member: "other"})
    assert receipt(books, theirs.request_id) is None
    assert [one["id"] for one in page(store_url, Page())["data"]] == [mine.request_id]
    with pytest.raises(ApiError) as refused:
        page(store_url, Page(after=theirs.request_id))
    assert (refused.value.code, refused.value.param) == ("invalid_request", "after")


def test_what_was_given_up_before_it_was_made_is_nobody_s(store_url: str) -> None:
    books = Books(store_url)
    books.book(Settlement("r-void", "client_gone", begun=False))
    assert page(store_url, Page(), Log()) == {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_make_up_the_log(store_url: str, order: Any) -> None:
    books = Books(store_url)
    ids = [books.admit(**PLACE).request_id for _ in range(7)]
    found: list[str] = []
    after, more = None, True
    while more:
        listed = page(store_url, Page(3, order, after))
        found += [one["id"] for one in listed["data"]]
        after, more = listed["last_id"], listed["has_more"]
    assert found == (ids if order == "asc" else ids[::-1])


def test_a_refusal_stands_in_the_log_and_took_nothing(store_url: str) -> None:
    books = Books(store_url, Limits(requests_per_minute=5))
    refused = request(**PLACE, tags="a")
    before = books.admit(**PLACE), books.rows("balances")
    refuse(books, refused)
    refuse(books, refused)
    told = receipt(books, refused.request_id)
    assert (told["outcome"], told["charge"], told["hold"], told["response_id"]) == (
        "rate_limited",
        "0.00",
        "0.00",
        None,
    )
    assert (told["usage"]["input_tokens"], told["tags"], told["attempts"], told["route"]) == (0, ["a"], [], None)
    assert books.rows("balances") == before[1]
    assert books.records() == []
    with connect(store_url, "read") as connection:
        assert list(reconcile(connection, 3600)) == []
    assert [one["outcome"] for one in page(store_url, Page())["data"]] == ["in_progress", "rate_limited"]


def test_refusals_are_one_statement_however_many(store_url: str) -> None:
    with connect(store_url) as connection:
        executed = statements_of(connection)
        NoteRefusals().perform(connection, [Refusal(request(**PLACE), "rate_limited") for _ in range(20)])
        assert len([sql for sql in executed if sql.startswith("INSERT")]) == 1


async def test_who_is_refused_too_often_fills_no_store(store: Store, store_url: str) -> None:
    now = 0.0
    log = RefusedLog(store, clock=lambda: now)
    for number in range(MOST_A_MINUTE + 5):
        await log.note(Refusal(request(**PLACE, tags=f"{number}"), "rate_limited"))
    await log.note(Refusal(request(**{**PLACE, "organization_id": "org_b"}), "rate_limited"))
    now = 61.0
    await log.note(Refusal(request(**PLACE), "rate_limited"))
    with connect(store_url, "read") as connection:
        sql = text("SELECT organization_id, count(*) FROM reservations GROUP BY 1 ORDER BY 1")
        assert [tuple(row) for row in connection.execute(sql)] == [("org_a", MOST_A_MINUTE + 1), ("org_b", 1)]


def test_the_log_of_a_project_is_read_by_its_index(store_url: str) -> None:
    books = Books(store_url)
    books.admit(**PLACE)
    executed: list[tuple[str, Any]] = []
    with connect(store_url) as connection:
        if connection.dialect.name == "postgresql":
            # For so few rows it would use none.
            connection.execute(text("SET enable_seqscan = off"))

        @event.listens_for(connection, "before_cursor_execute")
        def note(conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool) -> None:
            executed.append((statement, parameters))

        read_log(connection, LOG, Page())
        read_receipt(connection, LOG, "x")
        explain = "EXPLAIN QUERY PLAN " if connection.dialect.name == "sqlite" else "EXPLAIN "
        plans = [
            " ".join(str(row) for row in connection.exec_driver_sql(explain + sql, values))
            for sql, values in list(executed)
        ]
    assert "ix_reservations_log" in plans[0]
    assert "ix_reservations_" in plans[1]


def test_model_and_endpoint_of_older_rows_are_told(store_url: str) -> None:
    books = Books(store_url)
    asked = books.admit()
    told = receipt(books, asked.request_id, Log())
    assert (told["model"], told["endpoint"], told["project"]) == (MODEL, "responses", None)
