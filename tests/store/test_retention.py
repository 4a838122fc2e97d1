"""What is too old is deleted in bounded steps, and the ledger's sums stay right; what is open stays."""

from __future__ import annotations

import asyncio

import pytest

from sidecar.admission import retention
from sidecar.admission.retention import Retention
from sidecar.store import Store, chores, connect, repeat_forever
from tests.store.ledger_kit import PRICED, Books, completed
from tests.store.test_reconcile import findings

DAYS = 30


@pytest.fixture
def books(store_url: str) -> Books:
    books = Books(store_url, prices=PRICED)
    books.execute("INSERT INTO organizations (id, name, prepaid, created_at) VALUES ('org_a', 'a', true, 0)")
    books.execute("INSERT INTO accounts (organization_id, balance, held) VALUES ('org_a', 1000000000, 0)")
    books.execute("INSERT INTO credit_entries VALUES ('c1', 'org_a', 1000000000, 'paid', 0)")
    return books


def answer(books: Books, days_ago: float) -> str:
    """An answer that ended some days ago, with a correction; its id."""
    asked = books.admit()
    books.book(completed(asked.id, output_tokens=2, final=False))
    books.book(completed(asked.id, output_tokens=7))
    age(books, asked.id, days_ago)
    return asked.id


def age(books: Books, id: str, days: float) -> None:
    back = {"id": id, "correction": f"{id}-correction", "time": round(days * 86_400_000_000)}
    books.execute("UPDATE usage_records SET created_at = created_at - :time WHERE id IN (:id, :correction)", **back)
    books.execute(
        "UPDATE reservations SET created_at = created_at - :time, settled_at = settled_at - :time WHERE id = :id",
        id=id,
        time=back["time"],
    )


def delete(books: Books, days: int = DAYS) -> bool:
    with connect(books.url) as connection:
        (more,) = Retention().perform(connection, [days])
    return more


def kept(books: Books) -> set[str]:
    return {row["id"] for row in books.rows("reservations")}


def test_the_old_go_and_the_new_stay(books: Books) -> None:
    answer(books, DAYS + 1)
    new = answer(books, DAYS - 1)
    assert not delete(books)
    assert kept(books) == {new}
    assert {row["id"] for row in books.records()} == {new, f"{new}-correction"}


def test_the_sums_still_agree(books: Books) -> None:
    for _ in range(3):
        answer(books, DAYS + 1)
        answer(books, DAYS - 1)
        delete(books)
    assert findings(books.url) == []
    entries = {row["id"]: row["amount"] for row in books.rows("credit_entries")}
    assert entries.keys() == {"c1", "carried-forward-org_a"}
    (account,) = books.rows("accounts")
    assert account["balance"] == sum(entries.values()) - sum(row["price"] for row in books.records())
    assert entries["carried-forward-org_a"] < 0


def test_what_is_no_longer_kept_was_used_all_the_same(books: Books) -> None:
    answer(books, DAYS + 1)
    answer(books, 0)
    books.execute("UPDATE usage_records SET price = price + 2000000000 WHERE position = 1")
    books.execute("UPDATE accounts SET balance = balance - 2000000000")
    assert [finding.check for finding in findings(books.url)] == ["negative balance"]
    delete(books)
    assert [finding.check for finding in findings(books.url)] == ["negative balance"]


def test_an_open_reservation_is_never_deleted(books: Books) -> None:
    asked = books.admit()
    age(books, asked.id, 1000)
    answer(books, 1)
    delete(books)
    assert asked.id in kept(books)
    assert books.open() == 1


def test_the_newest_record_stays_for_those_who_have_read_it(books: Books) -> None:
    answer(books, DAYS + 2)
    newest = answer(books, DAYS + 1)
    delete(books)
    assert [row["id"] for row in books.records()] == [f"{newest}-correction"]
    assert kept(books) == {newest}
    assert findings(books.url) == []


def test_no_more_go_at_once_than_the_bound(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MOST_AT_ONCE", 4)
    for _ in range(3):
        answer(books, DAYS + 1)
    answer(books, 1)
    assert delete(books)
    assert len(books.records()) == 4
    assert not delete(books)
    assert len(books.records()) == 2
    assert findings(books.url) == []


def test_what_keeps_a_reservation_from_being_made_goes_too(books: Books) -> None:
    books.book(completed("given-up"))
    age(books, "given-up", DAYS + 1)
    assert kept(books) == {"given-up"}
    delete(books)
    assert kept(books) == set()


def test_one_at_a_time_deletes(postgres_url: str) -> None:
    books = Books(postgres_url)
    answer(books, DAYS + 1)
    answer(books, 1)
    with connect(postgres_url) as connection:
        assert Retention().perform(connection, [1000]) == [False]
        delete(books)
        assert len(books.records()) == 4
    delete(books)
    assert len(books.records()) == 2


async def test_workers_go_on_deleting_until_they_are_stopped(
    store: Store, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chores, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(retention, "MOST_AT_ONCE", 2)
    workers = [asyncio.create_task(repeat_forever(store, retention.Retention(), DAYS)) for _ in range(2)]
    for _ in range(2):
        for _ in range(3):
            answer(books, DAYS + 1)
        new = answer(books, 0)
        async with asyncio.timeout(30):
            while kept(books) != {new}:
                await asyncio.sleep(0.01)
        age(books, new, DAYS + 1)
    for worker in workers:
        worker.cancel()
    await asyncio.wait(workers)
    assert all(worker.cancelled() for worker in workers)
