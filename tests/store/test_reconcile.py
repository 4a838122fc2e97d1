"""Reconciliation finds nothing in a ledger that has been used, and everything that was changed behind its back."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.admission.limits import Limits
from sidecar.admission.reconcile import MOST_FINDINGS, Finding, reconcile
from sidecar.identity.organizations import add_credit
from sidecar.store import connect
from tests.store.ledger_kit import PRICED, Books, completed, refused_by_the_model

LIMITS = Limits(concurrent_requests=5, requests_per_minute=100, period="day", period_tokens=10_000)


def findings(url: str, open_seconds: float = 3600) -> list[Finding]:
    with connect(url, "read") as connection:
        return list(reconcile(connection, open_seconds))


def found(url: str) -> set[tuple[str, str]]:
    return {(finding.check, finding.subject) for finding in findings(url)}


@pytest.fixture
def books(store_url: str) -> Books:
    """A prepaid organization with credits, an answer that ended, one that was corrected, one under way."""
    books = Books(store_url, LIMITS, PRICED)
    books.execute("INSERT INTO organizations (id, name, prepaid, created_at) VALUES ('org_a', 'a', true, 0)")
    books.execute("INSERT INTO accounts (organization_id, balance, held) VALUES ('org_a', 1000000000, 0)")
    entry: dict[str, Any] = {"id": "c1", "amount": 1_000_000_000}
    books.execute("INSERT INTO credit_entries VALUES (:id, 'org_a', :amount, 'paid', 0)", **entry)
    for settle in (completed, refused_by_the_model):
        books.book(settle(books.admit().id))
    corrected = books.admit()
    books.book(completed(corrected.id, output_tokens=2, final=False))
    books.book(completed(corrected.id, output_tokens=7))
    books.admit()
    return books


def test_a_ledger_that_was_used_agrees(books: Books) -> None:
    assert books.open() == 1
    assert len(books.records()) == 4
    assert findings(books.url) == []


def test_a_reservation_that_is_open_for_too_long(books: Books) -> None:
    (finding,) = findings(books.url, open_seconds=-1)
    (open_one,) = [row["id"] for row in books.rows("reservations") if row["settled_at"] is None]
    assert (finding.check, finding.subject) == ("open reservation", open_one)
    assert "by worker w1" in finding.words


def test_a_record_that_is_gone(books: Books) -> None:
    gone = books.records()[1]
    assert gone["price"] == 0
    books.execute("DELETE FROM usage_records WHERE id = :id", id=gone["id"])
    assert found(books.url) == {("settled without a record", gone["id"])}


def test_a_reservation_that_is_gone(books: Books) -> None:
    corrected = books.records()[-1]["id"]
    books.execute("DELETE FROM reservations WHERE id = :id", id=corrected.removesuffix("-correction"))
    assert ("record without a reservation", corrected) in found(books.url)
    assert {check for check, _ in found(books.url)} == {"record without a reservation"}


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("UPDATE accounts SET balance = balance + 1", "balance"),
        ("UPDATE usage_records SET price = price + 1 WHERE price > 0", "balance"),
        ("DELETE FROM credit_entries", "balance"),
        ("UPDATE accounts SET held = held - 1", "held"),
        ("UPDATE reservations SET hold = hold + 1 WHERE settled_at IS NULL", "held"),
        ("UPDATE balances SET level = level + 1 WHERE kind = 'concurrent'", "concurrent"),
        ("DELETE FROM balances WHERE kind = 'concurrent'", "concurrent"),
        ("UPDATE balances SET level = -1 WHERE kind = 'quota'", "negative balance"),
    ],
)
def test_a_sum_that_was_changed(books: Books, change: str, check: str) -> None:
    books.execute(change)
    assert found(books.url) == {(check, "org_a")}


def test_more_used_than_credited(books: Books) -> None:
    books.execute("UPDATE accounts SET balance = balance - 2000000000")
    books.execute("UPDATE usage_records SET price = price + 2000000000 WHERE position = 1")
    (finding,) = findings(books.url)
    assert (finding.check, finding.subject) == ("negative balance", "org_a")
    assert "more than it was ever given" in finding.words


def test_credits_that_were_taken_away_are_no_fault(books: Books) -> None:
    with connect(books.url) as connection:
        assert add_credit(connection, "org_a", -5_000_000_000, "paid twice").balance < 0
    assert findings(books.url) == []
    books.execute("UPDATE accounts SET balance = balance - 1000000000")
    books.execute("UPDATE usage_records SET price = price + 1000000000 WHERE position = 1")
    assert found(books.url) == {("negative balance", "org_a")}


def test_a_great_many_findings_are_cut_short(store_url: str) -> None:
    books = Books(store_url)
    for _ in range(MOST_FINDINGS + 1):
        books.admit()
    told = findings(books.url, open_seconds=-1)
    assert len(told) == MOST_FINDINGS + 1
    assert told[-1].words == f"there are more than {MOST_FINDINGS} of these"
