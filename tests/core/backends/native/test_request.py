"""The request as a native upstream gets it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.backends.native.request import (
    IMAGE_TOKENS,
    compaction_body,
    estimated_tokens,
    image_places,
    request_body,
    request_headers,
    with_model,
)
from sidecar.responses.items import input_list

ULID = "01jabcdefghjkmnpqrstvwxyz0"


def sent(
    values: dict[str, Any], conversation: list[dict[str, Any]] | None = None, most_tokens: int | None = None
) -> dict[str, Any]:
    body = request_body(values, conversation, most_tokens=most_tokens)
    whole: dict[str, Any] = json.loads(with_model("gpt", body))
    return whole


def test_what_is_ours_is_left_out_and_the_rest_goes_as_it_was_sent() -> None:
    values = {
        "model": "v/m",
        "input": "hi",
        "ib": {"tags": ["a"]},
        "user": "u",
        "metadata": {"a": "b"},
        "previous_response_id": "resp_1",
        "store": True,
        "safety_identifier": "s",
        "reasoning": {"effort": "max", "new": 1},
        "tools": [{"type": "local_shell"}, {"type": "custom", "name": "x", "format": {"type": "grammar"}}],
        "temperature": 0.25,
        "top_p": None,
        "stream": True,
    }
    assert sent(values) == {
        "model": "gpt",
        "input": "hi",
        "store": False,
        "safety_identifier": "s",
        "reasoning": {"effort": "max", "new": 1},
        "tools": values["tools"],
        "temperature": 0.25,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
    }


@pytest.mark.parametrize(
    ("asked", "include"),
    [
        (None, ["reasoning.encrypted_content"]),
        (["a"], ["a", "reasoning.encrypted_content"]),
        (["reasoning.encrypted_content", "a"], ["reasoning.encrypted_content", "a"]),
    ],
)
def test_reasoning_always_comes_back_encrypted(asked: list[str] | None, include: list[str]) -> None:
    assert sent({"input": "hi", "include": asked})["include"] == include


@pytest.mark.parametrize(("asked", "limit"), [(None, 4096), (7, 7)])
def test_an_answer_has_a_limit(asked: int | None, limit: int) -> None:
    assert sent({"input": "hi", "max_output_tokens": asked}, most_tokens=4096)["max_output_tokens"] == limit


def test_the_whole_conversation_is_sent_without_the_ids_that_items_were_given_here() -> None:
    conversation: list[dict[str, Any]] = [
        {"type": "message", "id": f"msg_{ULID}_i0", "role": "user", "content": []},
        {"type": "reasoning", "id": "rs_up", "encrypted_content": "x", "summary": []},
        {"role": "user", "content": "go on"},
    ]
    assert sent({"input": "go on"}, conversation)["input"] == [
        {"type": "message", "role": "user", "content": []},
        conversation[1],
        {"type": "message", "role": "user", "content": "go on"},
    ]


def test_headers_are_few() -> None:
    headers = request_headers({"x-request-id": "r"}, "Bearer k", stream=True)
    assert headers == {
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "authorization": "Bearer k",
        "x-request-id": "r",
    }
    assert "authorization" not in request_headers({}, "", stream=False)


def estimate(values: dict[str, Any]) -> int:
    return estimated_tokens(input_list(values["input"]), request_body(values, None, most_tokens=None))


def test_tokens_are_estimated_by_bytes_and_images() -> None:
    empty = estimate({"input": "hi"})
    assert estimate({"input": "hi" + "x" * 400}) == empty + 100
    assert estimate({"input": "hi" + "\u00e9" * 100}) == empty + 100
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 100_000}
    more = estimate({"input": [{"role": "user", "content": [image]}]}) - empty
    assert IMAGE_TOKENS < more < IMAGE_TOKENS + 50


def test_images_have_places() -> None:
    image = {"type": "input_image", "image_url": "https://x/y.png"}
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, image]},
        {"type": "function_call_output", "call_id": "c", "output": [image]},
    ]
    assert image_places(items) == ["input[1].content[1]", "input[2].output[0]"]


def test_a_compaction_is_asked_for_with_little_more_than_the_conversation() -> None:
    values = {"input": "hi", "instructions": "x", "user": "u", "safety_identifier": "s"}
    body = compaction_body(values, [{"role": "user", "content": "hi"}])
    assert json.loads(with_model("gpt", body)) == {
        "model": "gpt",
        "instructions": "x",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
    }
