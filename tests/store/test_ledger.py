"""Reservations and settlements, on both engines: what is taken, given back, billed and corrected, each once."""

from __future__ import annotations

import pytest

from sidecar.admission.buckets import MICRO
from sidecar.admission.entries import Admitted, Refused, Settled, Settlement
from sidecar.admission.ledger import GivenUpError
from sidecar.admission.limits import Limits
from sidecar.store import connect
from tests.store.ledger_kit import (
    MODEL,
    PRICE,
    PRICED,
    Books,
    completed,
    ledger,
    refused_by_the_model,
    request,
    statements_of,
)

MINUTE = Limits(requests_per_minute=3, tokens_per_minute=1000)


def test_without_limits_a_reservation_is_only_written_down(store_url: str) -> None:
    books = Books(store_url)
    asked, outcome = books.reserve(end_user="user-1", tags="a,b", credential_id="key_1", stream=True)
    assert isinstance(outcome, Admitted)
    assert outcome.standing.headers() == {}
    (row,) = books.rows("reservations")
    assert (row["id"], row["tokens"], row["input_tokens"], row["settled_at"]) == (asked.id, 100, 10, None)
    assert (row["organization_id"], row["credential_id"], row["model"], row["worker"]) == (
        "org_a",
        "key_1",
        MODEL,
        "w1",
    )
    assert row["tags"] == "a,b"
    assert (row["end_user"], bool(row["stream"]), row["taken"]) == ("user-1", True, "")
    assert books.rows("balances") == []


def test_a_settlement_leaves_one_record_of_what_was_delivered(store_url: str) -> None:
    books = Books(store_url, prices=PRICED)
    asked = books.admit()
    used = completed(
        asked.id,
        input_tokens=12,
        cached_tokens=4,
        output_tokens=5,
        reasoning_tokens=2,
        guided_tokens=3,
        generated_tokens=9,
        first_token_ms=20,
        total_ms=45,
    )
    price = PRICE.of(12, 4, 5)
    assert price == 4500
    assert books.book(used) == [Settled(price, known=True)]
    (record,) = books.records()
    shown = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "guided_tokens", "image_bytes")
    assert [record[name] for name in shown] == [12, 4, 5, 2, 3, 0]
    assert (record["id"], record["request_id"], record["model"]) == (asked.id, asked.request_id, MODEL)
    assert (record["outcome"], record["first_token_ms"], record["total_ms"]) == ("completed", 20, 45)
    assert (record["price"], '"output": "0.60"' in record["price_terms"]) == (price, True)
    assert books.open() == 0


@pytest.mark.parametrize("again", [completed, lambda id: completed(id, final=False, output_tokens=99)])
def test_a_settlement_counts_once(store_url: str, again: object) -> None:
    assert callable(again)
    books = Books(store_url, Limits(tokens_per_minute=1000, concurrent_requests=5), PRICED)
    asked = books.admit()
    first = books.book(completed(asked.id))
    balances = books.rows("balances")
    assert books.book(again(asked.id)) == first
    assert len(books.records()) == 1
    assert books.level("concurrent", "*") == 0
    assert books.rows("balances") == balances


def test_a_reservation_is_made_once(store_url: str) -> None:
    books = Books(store_url, MINUTE)
    asked = request()
    books.book(asked)
    before = books.rows("balances")
    assert isinstance(books.book(asked)[0], Admitted)
    assert books.rows("balances") == before
    assert len(books.rows("reservations")) == 1


def test_a_request_that_generated_nothing_costs_nothing_and_takes_nothing(store_url: str) -> None:
    books = Books(store_url, MINUTE, PRICED)
    asked = books.admit()
    assert books.level("requests") < 3 * MICRO
    assert books.book(refused_by_the_model(asked.id)) == [Settled(0, known=True)]
    assert books.level("requests") == 3 * MICRO
    assert books.level("tokens") == 1000 * MICRO
    (record,) = books.records()
    assert (record["input_tokens"], record["output_tokens"], record["price"]) == (0, 0, 0)
    assert record["outcome"] == "infer_backend_unavailable"


def test_a_client_that_leaves_early_has_made_a_request(store_url: str) -> None:
    books = Books(store_url, MINUTE)
    for _ in range(3):
        asked = books.admit()
        books.book(Settlement(asked.id, "client_gone", begun=False))
    _, outcome = books.reserve()
    assert isinstance(outcome, Refused)
    assert outcome.message.startswith(f"3 requests per minute allowed on {MODEL}; retry in ")
    assert books.level("tokens") == 1000 * MICRO


def test_what_is_settled_is_there_for_who_asks_in_the_same_transaction(store_url: str) -> None:
    books = Books(store_url, Limits(concurrent_requests=1, tokens_per_minute=100))
    asked = books.admit()
    waiting = request(input_tokens=0, output_tokens=85)
    refused, _ = books.book(waiting, completed(asked.id, input_tokens=5, output_tokens=5))
    assert isinstance(refused, Admitted)
    assert books.level("concurrent", "*") == 1
    assert 5 * MICRO <= books.level("tokens") < 6 * MICRO


def test_tokens_beyond_the_reservation_are_taken_too(store_url: str) -> None:
    books = Books(store_url, Limits(tokens_per_minute=1000))
    asked = books.admit(output_tokens=512)
    books.book(completed(asked.id, output_tokens=2000))
    assert books.level("tokens") == pytest.approx((1000 - 2010) * MICRO, abs=100 * MICRO)
    _, outcome = books.reserve(input_tokens=1, output_tokens=1)
    assert isinstance(outcome, Refused)
    assert outcome.retry_after_us is not None
    assert outcome.retry_after_us > 55_000_000


def test_rates_count_what_was_generated_and_quotas_what_is_billed(store_url: str) -> None:
    books = Books(store_url, Limits(tokens_per_minute=1000, period="month", period_tokens=500))
    asked = books.admit()
    assert books.level("quota", "*") == 100
    books.book(completed(asked.id, output_tokens=5, generated_tokens=8))
    assert books.level("quota", "*") == 15
    assert books.level("tokens") == pytest.approx((1000 - 18) * MICRO, abs=30 * MICRO)
    _, outcome = books.reserve(output_tokens=476)
    assert isinstance(outcome, Refused)
    assert outcome.code == "quota_exceeded"
    assert outcome.retry_after_us is None


def test_limits_of_an_organization_and_a_model_come_from_the_store(store_url: str) -> None:
    books = Books(store_url, Limits(tokens_per_minute=1000))
    add = "INSERT INTO limits (organization_id, model, tokens_per_minute, concurrent_requests) VALUES (:o, :m, :t, :c)"
    books.execute(add, o="org_a", m="*", t=None, c=2)
    books.execute(add, o="*", m=MODEL, t=50, c=None)
    books.execute(add, o="org_b", m=MODEL, t=150, c=1)
    _, outcome = books.reserve()
    assert isinstance(outcome, Refused)
    assert outcome.message.startswith(f"50 tokens per minute allowed on {MODEL}, fewer than the 100 that this request")
    assert isinstance(books.reserve(organization_id="org_b")[1], Admitted)
    _, outcome = books.reserve(organization_id="org_b")
    assert isinstance(outcome, Refused)
    assert outcome.message.startswith(f"150 tokens per minute allowed on {MODEL}; retry in ")
    assert isinstance(books.reserve(model="other")[1], Admitted)
    assert isinstance(books.reserve(model="another")[1], Admitted)
    _, outcome = books.reserve(model="a third")
    assert isinstance(outcome, Refused)
    assert outcome.message == "2 requests at a time allowed; retry when one of them has ended"


def test_image_bytes_are_lent_and_given_back_at_once(store_url: str) -> None:
    # So few that none comes back while the test runs.
    books = Books(store_url, Limits(image_bytes_per_minute=3))
    first, outcome = books.reserve(image_bytes=5000)
    assert isinstance(outcome, Admitted)
    assert outcome.image_bytes == 3
    _, refused = books.reserve(image_bytes=1)
    assert isinstance(refused, Refused)
    assert books.admit(image_bytes=0)
    books.fetched(first.id, 1)
    books.fetched(first.id, 1)
    assert 2 * MICRO <= books.level("image_bytes") < 3 * MICRO
    books.book(completed(first.id, image_bytes=1))
    assert 2 * MICRO <= books.level("image_bytes") < 3 * MICRO
    assert books.records()[0]["image_bytes"] == 1


def test_images_that_nobody_counted_count_as_reserved(store_url: str) -> None:
    books = Books(store_url, Limits(image_bytes_per_minute=1000))
    asked = books.admit(image_bytes=400)
    books.book(Settlement(asked.id, "worker_lost", begun=False, final=False))
    assert books.level("image_bytes") == pytest.approx(600 * MICRO, abs=30 * MICRO)


def prepaid(books: Books, credit: int) -> None:
    books.execute("INSERT INTO organizations (id, name, prepaid, created_at) VALUES ('org_a', 'a', true, 0)")
    books.execute("INSERT INTO accounts (organization_id, balance, held) VALUES ('org_a', :credit, 0)", credit=credit)


def test_credits_are_held_and_then_charged(store_url: str) -> None:
    books = Books(store_url, prices=PRICED)
    hold = PRICE.of(10, 0, 90)
    prepaid(books, 2 * hold - 1)
    asked = books.admit()
    _, outcome = books.reserve()
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.retry_after_us) == ("credits_exhausted", None)
    books.book(completed(asked.id))
    (account,) = books.rows("accounts")
    assert (account["balance"], account["held"]) == (2 * hold - 1 - PRICE.of(10, 0, 5), 0)
    books.admit()


def test_a_prepaid_organization_without_an_account_has_no_credits(store_url: str) -> None:
    books = Books(store_url, prices=PRICED)
    books.execute("INSERT INTO organizations (id, name, prepaid, created_at) VALUES ('org_a', 'a', true, 0)")
    _, outcome = books.reserve()
    assert isinstance(outcome, Refused)
    assert outcome.code == "credits_exhausted"
    assert isinstance(books.reserve(organization_id="org_b")[1], Admitted)


def test_what_was_settled_in_the_owner_s_place_is_corrected_once(store_url: str) -> None:
    books = Books(store_url, Limits(period="day", period_tokens=10_000), PRICED)
    prepaid(books, 10**9)
    asked = books.admit()
    books.book(completed(asked.id, output_tokens=3, final=False))
    own = completed(asked.id, output_tokens=7)
    assert books.book(own) == books.book(own) == [Settled(PRICE.of(10, 0, 7), known=True)]
    first, correction = books.records()
    assert (first["id"], correction["id"]) == (asked.id, f"{asked.id}-correction")
    assert (first["output_tokens"], correction["output_tokens"], correction["input_tokens"]) == (3, 4, 0)
    assert first["price"] + correction["price"] == PRICE.of(10, 0, 7)
    assert books.level("quota", "*") == 17
    assert books.rows("accounts")[0]["balance"] == 10**9 - PRICE.of(10, 0, 7)


def test_a_reservation_that_was_given_up_is_no_longer_made(store_url: str) -> None:
    books = Books(store_url, MINUTE)
    asked = request()
    assert books.book(refused_by_the_model(asked.id)) == [Settled(0, known=False)]
    with pytest.raises(GivenUpError):
        books.book(asked)
    assert books.rows("balances") == []
    assert books.records() == []
    assert books.open() == 0


def test_a_limit_that_came_or_went_meanwhile_does_no_harm(store_url: str) -> None:
    limited = Books(store_url, Limits(concurrent_requests=2, tokens_per_minute=1000))
    free = Books(store_url)
    before, after = free.admit(), limited.admit()
    limited.book(completed(before.id))
    assert limited.level("concurrent", "*") == 1
    free.book(completed(after.id))
    assert limited.level("concurrent", "*") == 0


def test_the_number_of_statements_does_not_depend_on_the_number_of_items(store_url: str) -> None:
    of = ledger(Limits(requests_per_minute=10**6, tokens_per_minute=10**9, concurrent_requests=10**6), PRICED)
    counted = []
    for size in (1, 50):
        asked = [request(organization_id=f"org_{number}") for number in range(size)]
        with connect(store_url) as connection:
            of.perform(connection, asked)
        with connect(store_url) as connection:
            executed = statements_of(connection)
            of.perform(
                connection,
                [
                    *(request(organization_id=f"org_{number}") for number in range(size)),
                    *(completed(one.id) for one in asked),
                ],
            )
        counted.append(len(executed))
    assert counted[0] == counted[1] <= 11
