"""Items get what clients leave out, ids above all, and keep the rest as it was sent."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sidecar.responses.ids import ResponseIds
from sidecar.stored.items import as_array, input_items, lines_of, to_lines

IDS = ResponseIds("01h")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
items = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["function_call_output", "reasoning", "some_new_call"]), "text": texts},
        optional={"id": st.sampled_from(["a", "b", ""]), "extra": st.none() | st.lists(texts)},
    ),
    max_size=6,
)


def test_a_string_is_a_message_of_the_user() -> None:
    assert input_items("hello", IDS) == [
        {
            "status": "completed",
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "hello"}],
            "id": "msg_01h_i0",
        }
    ]


def test_a_message_written_by_the_assistant_has_an_output_part() -> None:
    (item,) = input_items([{"role": "assistant", "content": "yes"}], IDS)
    assert item["content"] == [{"type": "output_text", "text": "yes", "annotations": [], "logprobs": []}]


def test_what_a_client_sent_stays_as_it_was() -> None:
    sent: dict[str, Any] = {
        "type": "message",
        "id": "msg_x",
        "role": "user",
        "status": "incomplete",
        "content": [{"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"}],
        "phase": "commentary",
    }
    assert input_items([sent], IDS) == [sent]


def test_ids_are_made_by_type() -> None:
    kinds = ["function_call", "function_call_output", "reasoning", "web_search_call"]
    made = [item["id"] for item in input_items([{"type": kind} for kind in kinds], IDS)]
    assert made == ["fc_01h_i0", "fco_01h_i1", "rs_01h_i2", "item_01h_i3"]


@given(items, st.sets(st.sampled_from(["a", "b", "c"])))
def test_no_id_stands_twice(given_items: list[dict[str, Any]], taken: set[str]) -> None:
    ids = [item["id"] for item in input_items(given_items, IDS, taken)]
    assert all(ids)
    assert len({*ids} | taken) == len(ids) + len(taken)


@given(items)
def test_lines_are_the_items(given_items: list[dict[str, Any]]) -> None:
    lines = lines_of(to_lines(given_items))
    assert [json.loads(line) for line in lines] == given_items
    assert json.loads(as_array(lines)) == given_items
