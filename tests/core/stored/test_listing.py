"""A conversation is paged through in both directions, each item once."""

from __future__ import annotations

import json
from typing import Any, Literal
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.responses.errors import ApiError
from sidecar.responses.page import Page
from sidecar.stored.items import to_lines
from sidecar.stored.listing import cut as cut_out

# One text quotes the next item's id, as a conversation about ids may.
ITEMS = [{"type": "message", "id": f"m{n}", "text": f'"m{n + 1}"'} for n in range(7)]
TEXTS = [to_lines(ITEMS[:2]), b"", to_lines(ITEMS[2:3]), to_lines(ITEMS[3:])]


def cut(page: Page) -> dict[str, Any]:
    listed: dict[str, Any] = json.loads(cut_out(page, TEXTS))
    return listed


def test_without_a_query_the_last_twenty_come_newest_first() -> None:
    assert Page.of("") == Page(20, "desc", None)
    assert cut(Page.of("unknown=1")) == {
        "object": "list",
        "data": ITEMS[::-1],
        "first_id": "m6",
        "last_id": "m0",
        "has_more": False,
    }


@given(st.integers(1, 10), st.sampled_from(["asc", "desc"]))
def test_pages_make_up_the_whole(limit: int, order: Literal["asc", "desc"]) -> None:
    found, after, more = [], None, True
    while more:
        page = cut(Page(limit, order, after))
        assert len(page["data"]) <= limit
        assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
        found += page["data"]
        after, more = page["last_id"], page["has_more"]
    assert found == (ITEMS if order == "asc" else ITEMS[::-1])


def test_after_the_last_item_there_is_nothing() -> None:
    assert cut(Page.of("after=m0")) == {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=-1", "limit"),
        ("limit=", "limit"),
        ("limit=ten", "limit"),
        ("limit=%C2%B2", "limit"),
        ("limit=" + "9" * 5000, "limit"),
        ("order=up", "order"),
        ("after=", "after"),
    ],
)
def test_what_a_page_cannot_be_is_refused(query: str, param: str) -> None:
    with pytest.raises(ApiError) as refused:
        Page.of(query)
    assert (refused.value.code, refused.value.param) == ("invalid_request", param)


@pytest.mark.parametrize("after", ["m7", "m", '"', "x" * 500])
def test_an_item_that_is_not_there_is_refused(after: str) -> None:
    with pytest.raises(ApiError) as refused:
        cut(Page.of(urlencode({"after": after})))
    assert (refused.value.code, refused.value.param) == ("invalid_request", "after")
    assert len(refused.value.message) < 150


def test_the_page_before_an_item_is_not_had() -> None:
    with pytest.raises(ApiError) as refused:
        Page.of("before=m3")
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "before")
