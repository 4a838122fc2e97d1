"""``usage`` and ``reconcile`` as an operator types them."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from sidecar.store import connect
from sidecar.store.migrate import migrate
from tests.store.commands import Run
from tests.store.ledger_kit import PRICED, Books, completed

TODAY = time.strftime("%Y-%m-%d", time.gmtime())


@pytest.fixture
def books(config: Path) -> Books:
    url = f"sqlite:///{config.parent}/state/ledger.db"
    migrate(url)
    books = Books(url, prices=PRICED)
    for _ in range(2):
        books.book(completed(books.admit(credential_id="key_1").id))
    return books


def test_usage_as_json_has_money_as_text(run: Run, books: Books) -> None:
    (row,) = json.loads(run("usage", "--by", "key", "--by", "model", "--json").stdout)
    prices = sum(record["price"] for record in books.records())
    assert prices == 9000
    assert row == {
        "key": "key_1",
        "key_name": "",
        "model": "b3os/scripted",
        "requests": 2,
        "input_tokens": 20,
        "cached_tokens": 0,
        "output_tokens": 10,
        "reasoning_tokens": 0,
        "guided_tokens": 0,
        "image_bytes": 0,
        "price": "0.000009",
        "currency": "USD",
    }


def test_usage_as_csv_is_what_json_is(run: Run, books: Books) -> None:
    books.book(completed(books.admit(organization_id="org_b").id))
    by = ("--by", "day", "--by", "organization")
    rows: list[dict[str, Any]] = json.loads(run("usage", *by, "--json").stdout)
    assert len(rows) == 2
    read = list(csv.DictReader(io.StringIO(run("usage", *by, "--csv").stdout)))
    assert read == [{name: str(value) for name, value in row.items()} for row in rows]


def test_usage_for_people_ends_with_the_total(run: Run, books: Books) -> None:
    lines = run("usage").stdout.splitlines()
    assert lines[0].split()[:2] == ["Day", "Requests"]
    assert lines[1].split() == [TODAY, "2", "20", "0", "10", "0", "0", "0", "0.000009", "USD"]
    assert lines[2].split() == ["Total", *lines[1].split()[1:]]


def test_people_see_organizations_by_name_and_programs_by_both(run: Run, books: Books) -> None:
    run("orgs", "create", "acme", "--id", "org_b")
    books.book(completed(books.admit(organization_id="org_b").id))
    by = ("--by", "organization", "--organization", "acme")
    lines = run("usage", *by).stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["Organization", "Requests"], ["acme", "1"], ["Total", "1"]]
    assert run("usage", "--by", "organization").stdout.splitlines()[1].split()[0] == "org_a"
    (row,) = json.loads(run("usage", *by, "--json").stdout)
    assert (row["organization"], row["organization_name"]) == ("org_b", "acme")


def test_the_total_of_usage_by_tag_counts_each_request_once(run: Run, books: Books) -> None:
    for tags in ("a,b", "b"):
        books.book(completed(books.admit(tags=tags).id))
    lines = [line.split() for line in run("usage", "--by", "tag").stdout.splitlines()]
    assert sorted(line[:2] for line in lines[1:4]) == [["2", "20"], ["a", "1"], ["b", "2"]]
    assert lines[4][:4] == ["Total", "4", "40", "0"]
    rows = json.loads(run("usage", "--by", "tag", "--json").stdout)
    assert {row["tag"]: row["requests"] for row in rows} == {"": 2, "a": 1, "b": 2}


def test_requests_are_listed_and_shown(run: Run, books: Books) -> None:
    place = {"project": "support", "environment": "production"}
    running = books.admit(**place, tags="a,b")
    done = books.admit(**place, told_model="acme/small")
    attempts = '[{"route":"triton","outcome":"completed","status":null}]'
    books.book(completed(done.id, attempts=attempts, total_ms=7))
    listed = json.loads(run("requests", "list", "--organization", "org_a", "--project", "support", "--json").stdout)
    assert [one["id"] for one in listed["data"]] == [done.request_id, running.request_id]
    assert len(json.loads(run("requests", "list", "--json").stdout)["data"]) == 4
    rest = json.loads(run("requests", "list", "--after", done.request_id, "--limit", "1", "--json").stdout)
    assert ([one["id"] for one in rest["data"]], rest["has_more"]) == ([running.request_id], True)
    lines = [line.split() for line in run("requests", "list", "--limit", "2").stdout.splitlines()]
    assert lines[1][3:] == ["support/production", "acme/small", "completed", "10", "5", "0.0000045", "USD", "7"]
    assert lines[2][3:] == ["support/production", "b3os/scripted", "in_progress", "-", "-", "-", "-"]
    for name in (done.request_id, f"resp_{done.id}"):
        assert json.loads(run("requests", "show", name, "--json").stdout) == listed["data"][0]
    shown = [line.split() for line in run("requests", "show", done.request_id).stdout.splitlines()]
    assert ["attempt", "1", "triton:", "completed"] in shown
    assert ["usage.output_tokens", "5"] in shown
    assert ["tags", "a,", "b"] in [
        line.split() for line in run("requests", "show", running.request_id).stdout.splitlines()
    ]


def test_requests_that_there_are_not(run: Run, books: Books) -> None:
    assert run("requests", "show", "none", status=1).output == "There is no request none.\n"
    assert run("requests", "list", "--after", "none", status=1).output == "There is no item none in this list.\n"
    assert "There is no organization none." in run("requests", "list", "--organization", "none", status=1).output
    assert "--organization is needed" in run("requests", "list", "--project", "p", status=2).output


def test_usage_of_an_organization_that_there_is_not(run: Run, books: Books) -> None:
    assert run("usage", "--organization", "acmee", status=1).output == "There is no organization acmee.\n"
    run("orgs", "create", "acme")
    assert json.loads(run("usage", "--organization", "acme", "--json").stdout) == []


def test_a_model_without_prices_has_no_currency(run: Run, books: Books) -> None:
    books.execute("UPDATE usage_records SET price = 0, price_terms = '{}' WHERE id = :id", id=books.records()[0]["id"])
    lines = [line.split()[-2:] for line in run("usage").stdout.splitlines()]
    assert sorted(lines[1:3]) == [["0", "-"], ["0.0000045", "USD"]]
    assert lines[3:] == [["0.0000045", "USD"]]
    rows = json.loads(run("usage", "--json").stdout)
    assert {(row["price"], row["currency"]) for row in rows} == {("0.00", None), ("0.0000045", "USD")}
    csv_rows = csv.DictReader(io.StringIO(run("usage", "--csv").stdout))
    assert {row["currency"] for row in csv_rows} == {"", "USD"}
    books.execute("UPDATE usage_records SET price = 0, price_terms = '{}'")
    assert run("usage").stdout.splitlines()[-1].split()[-1] == "-"


def test_usage_of_a_time_without_any(run: Run, books: Books) -> None:
    assert json.loads(run("usage", "--to", "2001-01-01", "--json").stdout) == []
    assert len(json.loads(run("usage", "--from", TODAY, "--to", TODAY, "--json").stdout)) == 1
    assert len(run("usage", "--to", "2001-01-01").stdout.splitlines()) == 1


def test_reconcile_says_that_all_agrees_or_what_does_not(run: Run, books: Books) -> None:
    assert run("reconcile").stdout == "The ledger's sums agree.\n"
    assert json.loads(run("reconcile", "--json").stdout) == {"findings": []}
    gone = books.records()[0]["id"]
    books.execute("DELETE FROM reservations WHERE id = :id", id=gone)
    assert gone in run("reconcile", status=1).stdout
    (finding,) = json.loads(run("reconcile", "--json", status=1).stdout)["findings"]
    assert (finding["check"], finding["subject"]) == ("record without a reservation", gone)


def test_a_report_waits_for_no_writer(run: Run, books: Books) -> None:
    with connect(books.url):
        result = run("usage", "--json")
    assert json.loads(result.stdout)[0]["requests"] == 2
