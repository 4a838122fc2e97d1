"""Idempotency keys on the bureau surface, behind Envoy: a request that is sent again is answered and billed once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from stack.local import LocalStack
from stack.upstreams import ScriptedUpstream
from tests.e2e import test_native as native
from tests.e2e.bureau import make_client, said
from tests.e2e.client import eventually
from tests.e2e.ledger import LocalLedger, billed_once


@pytest.fixture(scope="module")
def client(stack: LocalStack) -> Iterator[Any]:
    with make_client(stack, stack.project_key) as client:
        yield client


def keyed() -> dict[str, str]:
    return {"Idempotency-Key": str(uuid.uuid4())}


def test_a_request_is_answered_once(client: Any) -> None:
    key, raw = keyed(), client.responses.with_raw_response
    first = raw.create(**said("Hello"), metadata={"a": "b"}, extra_headers=key)
    again = raw.create(**said("Hello"), metadata={"a": "b"}, extra_headers=key)
    assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (None, "true")
    assert (again.status_code, again.text) == (200, first.text)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert client.responses.create(**said("Hello"), extra_headers=keyed()).id != again.parse().id


def test_a_stream_is_given_again_as_the_same_events(client: Any) -> None:
    key = keyed()
    first = list(client.responses.create(**said("One", {"sleep": 0.2}, " two"), stream=True, extra_headers=key))
    again = list(client.responses.create(**said("One", {"sleep": 0.2}, " two"), stream=True, extra_headers=key))
    assert first[-1].type == "response.completed"
    assert [event.to_json() for event in again] == [event.to_json() for event in first]


@pytest.mark.parametrize("steps", [["One", " two"], [{"status": 400}]], ids=["answered", "refused"])
def test_a_native_upstream_is_asked_once(client: Any, upstream: ScriptedUpstream, steps: list[Any]) -> None:
    key, since = keyed(), len(upstream.diary())
    told = []
    for _ in range(2):
        try:
            made = client.responses.with_raw_response.create(**native.said(*steps), stream=True, extra_headers=key)
            told.append((made.http_response.read(), made.headers.get("idempotency-replayed")))
        except openai.BadRequestError as refused:
            told.append((refused.response.content, refused.response.headers.get("idempotency-replayed")))
    assert len(native.sent(upstream, since)) == 1
    assert [replayed for _, replayed in told] == [None, "true"]
    assert told[0][0] == told[1][0] != b""


def test_another_request_with_the_key_is_refused_and_so_is_what_is_no_key(client: Any) -> None:
    key = keyed()
    client.responses.create(**said("Hello"), extra_headers=key)
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        client.responses.create(**said("Hello!"), extra_headers=key)
    assert (refused.value.code, refused.value.param) == ("idempotency_mismatch", "idempotency-key")
    with pytest.raises(openai.BadRequestError) as malformed:
        client.responses.create(**said("Hello"), extra_headers={"Idempotency-Key": "k" * 256})
    assert (malformed.value.code, malformed.value.param) == ("invalid_request", "idempotency-key")
    # What is refused for its form is an answer as well.
    again = keyed()
    for replayed in (None, "true"):
        with pytest.raises(openai.BadRequestError) as faulty:
            client.responses.create(**said("Hello"), temperature=7, extra_headers=again)
        assert faulty.value.param == "temperature"
        assert faulty.value.response.headers.get("idempotency-replayed") == replayed


async def test_two_at_once_are_one_request(stack: LocalStack) -> None:
    ledger = LocalLedger(stack)
    key = keyed()
    async with AsyncOpenAI(base_url=stack.bureau_url, api_key=stack.project_key, max_retries=0) as client:
        body = said({"sleep": 0.5}, "Hello")
        both = await asyncio.gather(*(client.responses.create(**body, extra_headers=key) for _ in range(4)))
    (id_,) = {response.id.removeprefix("resp_") for response in both}
    await eventually(lambda: id_ in ledger.ids())


async def test_who_leaves_and_tries_again_pays_once(stack: LocalStack) -> None:
    ledger, key = LocalLedger(stack), keyed()
    body = said("Hello", {"sleep": 1.0}, " there")
    async with AsyncOpenAI(base_url=stack.bureau_url, api_key=stack.project_key, max_retries=0) as client:
        with pytest.raises(openai.APITimeoutError):
            await client.responses.create(**body, extra_headers=key, timeout=0.6)
        second = await client.responses.create(**body, extra_headers=key)
        again = await client.responses.with_raw_response.create(**body, extra_headers=key)
    assert (again.headers["idempotency-replayed"], again.parse().id) == ("true", second.id)
    assert second.usage is not None
    await billed_once(ledger, second.id.removeprefix("resp_"), "client_gone")
