"""The sums of usage are exactly those of the records, however they are grouped."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert

from sidecar.admission.bill import COUNTS
from sidecar.admission.usage import Selection, Sums, find_organization, read_usage
from sidecar.store import connect
from sidecar.store.tables import credentials, organizations, usage_records

DAY = 86_400_000_000
DOLLARS = '{"from": "2026-01-01", "currency": "USD", "input": "1"}'
FIRST = date(1970, 1, 2)


def record(id: str, day: int = 1, **changed: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "id": id,
        "request_id": f"request-{id}",
        "organization_id": "org_a",
        "credential_id": "key_1",
        "model": "small",
        "node": "n1",
        **dict.fromkeys(COUNTS, 0),
        "price": 0,
        "price_terms": DOLLARS,
        "outcome": "completed",
        "stream": True,
        "started_at": 0,
        "total_ms": 5,
        "created_at": day * DAY,
        "txid": 0,
        **dict.fromkeys(("end_user", "tags", "session")),
    }
    return {**values, **changed}


def write(url: str, *records: dict[str, Any]) -> None:
    with connect(url) as connection:
        connection.execute(insert(usage_records), list(records))


def sums(url: str, *by: str, **selected: Any) -> list[Sums]:
    with connect(url, "read") as connection:
        return list(read_usage(connection, Selection(by, **selected)))


def prices(url: str, *by: str, **selected: Any) -> dict[tuple[str, ...], int]:
    return {tuple(found.group.values()): found.price for found in sums(url, *by, **selected)}


@pytest.fixture
def books(store_url: str) -> str:
    write(
        store_url,
        record("1", price=1, input_tokens=10, cached_tokens=4, output_tokens=3, reasoning_tokens=1),
        record("2", price=20, model="large", output_tokens=5, guided_tokens=2, image_bytes=7),
        record("3", price=300, day=2, credential_id="key_2"),
        record("4", price=4000, day=3, organization_id="org_b", credential_id=None),
        record("1-correction", price=50_000, day=3, output_tokens=2),
    )
    return store_url


def test_everything_together(books: str) -> None:
    (found,) = sums(books)
    assert (found.group, found.requests, found.price, found.currency) == ({}, 4, 54_321, "USD")
    assert found.counts == {
        "input_tokens": 10,
        "cached_tokens": 4,
        "output_tokens": 10,
        "reasoning_tokens": 1,
        "guided_tokens": 2,
        "image_bytes": 7,
    }


def test_by_each_group_and_by_several(books: str) -> None:
    assert prices(books, "day") == {("1970-01-02",): 21, ("1970-01-03",): 300, ("1970-01-04",): 54_000}
    assert prices(books, "organization") == {("org_a", ""): 50_321, ("org_b", ""): 4000}
    assert prices(books, "key") == {("", ""): 4000, ("key_1", ""): 50_021, ("key_2", ""): 300}
    assert prices(books, "model") == {("large",): 20, ("small",): 54_301}
    assert prices(books, "model", "day") == {
        ("1970-01-02", "large"): 20,
        ("1970-01-02", "small"): 1,
        ("1970-01-03", "small"): 300,
        ("1970-01-04", "small"): 54_000,
    }


def test_by_tag_a_record_counts_under_each_and_the_whole_counts_it_once(store_url: str) -> None:
    write(
        store_url,
        record("1", price=1, tags="a,b", end_user="ada", session="s"),
        record("2", price=20, tags="b", end_user="ada"),
        record("3", price=300),
        record("1-correction", price=4000, tags="a,b", end_user="ada", session="s"),
    )
    assert prices(store_url, "tag") == {("a",): 4001, ("b",): 4021, ("",): 300}
    assert prices(store_url, "tag", "end_user") == {("ada", "a"): 4001, ("ada", "b"): 4021, ("", ""): 300}
    assert prices(store_url, "session") == {("s",): 4001, ("",): 320}
    assert {found.group["tag"]: found.requests for found in sums(store_url, "tag")} == {"a": 1, "b": 2, "": 1}
    (whole,) = sums(store_url)
    assert (whole.price, whole.requests) == (4321, 3)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.lists(st.sampled_from("abc"), unique=True), st.integers(0, 10**6)), max_size=12))
def test_sums_by_tag_are_those_of_the_records_that_have_it(store_url: str, made: list[tuple[list[str], int]]) -> None:
    with connect(store_url) as connection:
        connection.execute(delete(usage_records))
    rows = [record(str(n), price=price, tags=",".join(tags) or None) for n, (tags, price) in enumerate(made)]
    if rows:
        write(store_url, *rows)
    expected = Counter[tuple[str, ...]]()
    for tags, price in made:
        for tag in tags or [""]:
            expected[tag,] += price
    found = prices(store_url, "tag")
    assert {group: price for group, price in found.items() if price} == dict(expected - Counter())
    assert sum(prices(store_url).values()) == sum(price for _, price in made)


def test_both_ends_of_a_time_are_included(books: str) -> None:
    assert prices(books, since=FIRST, until=FIRST) == {(): 21}
    assert prices(books, since=FIRST + timedelta(days=1)) == {(): 54_300}
    assert prices(books, until=FIRST + timedelta(days=1)) == {(): 321}


def test_a_day_ends_with_its_last_microsecond(store_url: str) -> None:
    write(store_url, record("1", price=1, created_at=2 * DAY - 1), record("2", price=2, created_at=2 * DAY))
    assert prices(store_url, "day") == {("1970-01-02",): 1, ("1970-01-03",): 2}
    assert prices(store_url, until=FIRST) == {(): 1}


def test_organizations_and_keys_are_shown_with_their_names(books: str) -> None:
    with connect(books) as connection:
        values = {"prepaid": False, "created_at": 0}
        connection.execute(insert(organizations).values(id="org_a", name="Example", **values))
        key = {
            "id": "key_1",
            "organization_id": "org_a",
            "kind": "key",
            "name": "laptop",
            "digest": b"1",
            "hint": "abcd",
        }
        connection.execute(insert(credentials).values(**key, scopes="", created_at=0))
    assert prices(books, "key", organization="org_a") == {("key_1", "laptop"): 50_021, ("key_2", ""): 300}
    assert prices(books, "organization", "key") == {
        ("org_a", "Example", "key_1", "laptop"): 50_021,
        ("org_a", "Example", "key_2", ""): 300,
        ("org_b", "", "", ""): 4000,
    }


def test_an_organization_is_found_by_its_id_its_name_or_its_records(books: str) -> None:
    with connect(books) as connection:
        values = {"prepaid": False, "created_at": 0}
        connection.execute(insert(organizations).values(id="org_c", name="org_b", **values))
        found = {name: find_organization(connection, name) for name in ("org_a", "org_b", "org_c", "unknown")}
    assert found == {"org_a": "org_a", "org_b": "org_c", "org_c": "org_c", "unknown": None}
    assert prices(books, organization="org_c") == {}


def test_currencies_are_never_added_up(store_url: str) -> None:
    euros = DOLLARS.replace("USD", "EUR")
    write(store_url, record("1", price=1), record("2", price=2, price_terms=euros), record("3", price_terms="{}"))
    assert {found.currency: (found.price, found.requests) for found in sums(store_url)} == {
        None: (0, 1),
        "EUR": (2, 1),
        "USD": (1, 1),
    }


def test_sums_are_exact_beyond_what_a_float_holds(store_url: str) -> None:
    write(store_url, record("1", price=2**60 + 1), record("2", price=2**60), record("3", price=1))
    assert prices(store_url) == {(): 2**61 + 2}
