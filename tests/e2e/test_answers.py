"""Answers on the real parts, over every wire: text, usage, limits, and every refusal as a plain HTTP error."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from stack.local import LocalStack
from tests.e2e.client import Client, error_of, script

MIB = 1024 * 1024


@pytest.fixture(params=["stack", "direct_stack", "origin_stack"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with Client(request.getfixturevalue(request.param)) as client:
        yield client


async def test_a_script_is_streamed_piece_by_piece(client: Client) -> None:
    pieces = ["Grüße ", "an alle ", "👋"]
    events = await client.events(script(*pieces))
    assert [event.data["delta"] for event in events if event.type.endswith("delta")] == pieces
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"


async def test_characters_split_over_tokens_come_whole(client: Client) -> None:
    text = "日本語 👩‍🚀 déjà"
    events = await client.events(script({"split_ids": text}))
    deltas = [event.data["delta"] for event in events if event.type.endswith("delta")]
    assert "".join(deltas) == text
    assert "\ufffd" not in "".join(deltas)


async def test_a_client_that_asks_to_store_is_answered_and_told_that_nothing_is(client: Client) -> None:
    answer = await client.ask(script("ok", store=True, user="u", service_tier="flex", prompt_cache_key="p"))
    assert (answer.status_code, answer.json()["store"]) == (200, False)


async def test_usage_is_exact_streamed_and_not(client: Client) -> None:
    body = script("one", " two", " three")
    streamed = (await client.events(body))[-1].data["response"]["usage"]
    whole = (await client.ask(body)).json()["usage"]
    assert streamed == whole
    assert streamed["output_tokens"] == 4
    assert streamed["total_tokens"] == streamed["input_tokens"] + 4


async def test_the_head_waits_for_the_first_token_and_tells_it(client: Client) -> None:
    async with client.stream(script({"sleep": 0.3}, "late")) as stream:
        await stream.rest()
    name, _, duration = stream.response.headers["server-timing"].partition(";dur=")
    assert name == "ttft"
    assert float(duration) >= 300


async def test_max_output_tokens_ends_an_answer_as_incomplete(client: Client) -> None:
    answer = (await client.ask(script({"split_ids": "one two three four"}, max_output_tokens=2))).json()
    assert answer["status"] == "incomplete"
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert answer["usage"]["output_tokens"] == 2
    assert answer["output"][0]["status"] == "incomplete"


async def test_a_prompt_beyond_the_context_is_refused(client: Client) -> None:
    answer = await client.ask({"model": "smollm2-135m", "input": "word " * 9000})
    assert (answer.status_code, error_of(answer)["code"]) == (400, "context_length_exceeded")


async def test_a_body_of_10_mib_is_accepted(client: Client) -> None:
    body = json.dumps(script("ok", metadata={"k": "v"})).encode()
    answer = await client.ask(body + b" " * (10 * MIB - len(body)))
    assert answer.json()["output"][0]["content"][0]["text"] == "ok"


@pytest.mark.parametrize("size", [640 * 1024, MIB + 1])
async def test_large_bodies_are_answered(client: Client, size: int) -> None:
    body = json.dumps(script("ok")).encode()
    answer = await client.ask(body + b" " * (size - len(body)))
    assert answer.status_code == 200


async def test_a_body_of_11_mib_is_refused_with_both_numbers(client: Client) -> None:
    answer = await client.ask(b" " * (11 * MIB))
    error = error_of(answer)
    assert (answer.status_code, error["code"]) == (413, "payload_too_large")
    assert str(11 * MIB) in error["message"]
    assert str(10 * MIB) in error["message"]


async def test_an_unknown_model_is_not_available(client: Client) -> None:
    answer = await client.ask({"model": "gpt-5", "input": "hi"})
    assert (answer.status_code, error_of(answer)["code"]) == (404, "model_not_available")


@pytest.mark.parametrize("body", [b"", b"{", b'{"model": "scripted"', b"[1]", b'{"a":1,"a":2}', b"\xff", b"null"])
async def test_malformed_json_is_refused(client: Client, body: bytes) -> None:
    answer = await client.ask(body)
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_request")


async def test_another_content_type_is_refused(client: Client) -> None:
    answer = await client.ask(script("x"), **{"content-type": "text/plain"})
    assert (answer.status_code, error_of(answer)["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_error_first_is_a_plain_error(client: Client, stream: bool) -> None:
    answer = await client.ask(script({"error": "secret words"}, stream=stream))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "infer_backend_unavailable")
    assert answer.headers["retry-after"]
    assert "secret" not in answer.text


@pytest.mark.parametrize("separately", [False, True])
async def test_a_model_error_in_the_middle_is_an_error_event(client: Client, separately: bool) -> None:
    events = await client.events(script("some", {"error": "secret words", "final_separately": separately}))
    assert events[-1].type == "error"
    assert "response.completed" not in {event.type for event in events}
    assert "secret" not in json.dumps([event.data for event in events])


async def test_a_model_error_in_the_middle_is_a_plain_error_without_stream(client: Client) -> None:
    answer = await client.ask(script("some", {"error": "boom"}))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "infer_backend_unavailable")


async def test_client_headers_cannot_steer_triton(client: Client) -> None:
    headers = {"grpc-timeout": "1m", "triton_grpc_error": "true", "te": "trailers"}
    answer = await client.ask(script({"sleep": 0.1}, "ok"), **headers)
    assert answer.status_code == 200


async def test_many_requests_share_a_connection(stack: LocalStack) -> None:
    async with Client(stack, http1=False, http2=True) as client:
        for _ in range(20):
            assert (await client.ask(script("ok"))).http_version == "HTTP/2"
        assert (await client.ask(b"{")).status_code == 400
        assert (await client.events(script("a", "b")))[-1].type == "response.completed"
