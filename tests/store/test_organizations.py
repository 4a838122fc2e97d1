"""Organizations in the store, their limits and their credits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from sidecar.admission.limits import Limits
from sidecar.identity.organizations import (
    OrganizationError,
    add_credit,
    create,
    find,
    limits_of,
    listed,
    set_limits,
)
from sidecar.store import connect
from sidecar.store.tables import credit_entries


def test_an_organization_is_found_by_its_id_and_its_name(store_url: str) -> None:
    with connect(store_url) as connection:
        made = create(connection, "acme", prepaid=True)
        other = create(connection, "other", prepaid=False, id_="tenant-7")
        assert made.id.startswith("org_")
        assert (made.prepaid, made.balance, made.held) == (True, 0, 0)
        assert find(connection, made.id) == find(connection, "acme") == made
        assert find(connection, "tenant-7") == other
        assert {organization.id for organization in listed(connection)} == {made.id, "tenant-7"}


@pytest.mark.parametrize(("name", "id_"), [("acme", None), ("second", "tenant-7")])
def test_no_two_have_one_name_or_id(store_url: str, name: str, id_: str | None) -> None:
    with connect(store_url) as connection:
        create(connection, "acme", prepaid=False, id_="tenant-7")
        with pytest.raises(OrganizationError, match="already"):
            create(connection, name, prepaid=False, id_=id_)
        assert len(listed(connection)) == 1


def test_no_id_is_another_s_name(store_url: str) -> None:
    with connect(store_url) as connection:
        made = create(connection, "tenant-7", prepaid=False, id_="tenant-8")
        for name, id_ in (("acme", "tenant-7"), ("tenant-8", None), ("tenant-7", None), ("acme", "tenant-8")):
            with pytest.raises(OrganizationError, match="of this name or id already"):
                create(connection, name, prepaid=False, id_=id_)
        assert find(connection, "tenant-7") == find(connection, "tenant-8") == made


def test_limits_are_changed_one_by_one_and_inherited_again(store_url: str) -> None:
    with connect(store_url) as connection:
        acme = create(connection, "acme", prepaid=False).id
        assert limits_of(connection, acme) == {}
        set_limits(connection, acme, "*", {"requests_per_minute": 60, "tokens_per_minute": 1000})
        set_limits(connection, acme, "*", {"tokens_per_minute": 2000, "period": "day", "period_tokens": 10})
        set_limits(connection, acme, "qwen", {"concurrent_requests": 2})
        assert limits_of(connection, acme) == {
            "*": Limits(requests_per_minute=60, tokens_per_minute=2000, period="day", period_tokens=10),
            "qwen": Limits(concurrent_requests=2),
        }
        assert set_limits(connection, acme, "qwen", {"concurrent_requests": None}) == Limits()
        assert list(limits_of(connection, acme)) == ["*"]
        assert limits_of(connection, "*") == {}


@pytest.mark.parametrize("changes", [{"period": "day"}, {"period_tokens": 5}])
def test_a_quota_is_whole(store_url: str, changes: dict[str, int | str | None]) -> None:
    with connect(store_url) as connection:
        with pytest.raises(OrganizationError, match="both a period and its tokens"):
            set_limits(connection, "*", "*", changes)
        assert limits_of(connection, "*") == {}


def test_credits_are_added_and_taken_with_a_reason(store_url: str) -> None:
    with connect(store_url) as connection:
        acme = create(connection, "acme", prepaid=True)
        create(connection, "other", prepaid=True)
        add_credit(connection, "acme", 5_000_000_000, "invoice 7")
        assert add_credit(connection, acme.id, -1, "correction").balance == 4_999_999_999
        assert find(connection, "other").balance == 0
        entries = connection.execute(select(credit_entries).order_by(credit_entries.c.created_at)).all()
        assert [(row.organization_id, row.amount, row.reason) for row in entries] == [
            (acme.id, 5_000_000_000, "invoice 7"),
            (acme.id, -1, "correction"),
        ]
        with pytest.raises(OrganizationError, match="There is no organization nobody"):
            add_credit(connection, "nobody", 1, "x")


def test_what_is_booked_under_an_id_is_booked_once(store_url: str) -> None:
    with connect(store_url) as connection:
        acme = create(connection, "acme", prepaid=True)
        create(connection, "other", prepaid=True)
    for named in ("acme", acme.id):
        with connect(store_url) as connection:
            assert add_credit(connection, named, 5, "invoice", "invoice-7").balance == 5
    with connect(store_url) as connection:
        for organization, amount in (("acme", 6), ("other", 5)):
            with pytest.raises(OrganizationError, match="Another credit has been booked as invoice-7"):
                add_credit(connection, organization, amount, "invoice", "invoice-7")
        for id_ in ("", "a b", "carried-forward-x", "x" * 129):
            with pytest.raises(OrganizationError, match="The id of a credit has"):
                add_credit(connection, "acme", 5, "invoice", id_)
        assert add_credit(connection, "acme", 5, "invoice", "invoice-8").balance == 10
        assert find(connection, "other").balance == 0
        assert connection.scalars(select(credit_entries.c.amount)).all() == [5, 5]


def test_two_that_book_under_one_id_at_a_time_book_once(store_url: str) -> None:
    with connect(store_url) as connection:
        create(connection, "acme", prepaid=True)

    def book(_: int) -> int:
        with connect(store_url) as connection:
            return add_credit(connection, "acme", 5, "invoice", "invoice-7").balance

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(book, range(4))) == [5, 5, 5, 5]
