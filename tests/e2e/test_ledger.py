"""The ledger, its commands, its feed and Envoy's access log say of the same requests what their clients received."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import aiohttp
import grpc
import pytest

from sidecar.feed.service import SERVICE
from sidecar.feed.usage_feed_pb2 import StreamRequest, StreamResponse, UsageRecord
from stack.first_key import command
from stack.local import SCRIPTED, LocalStack
from stack.triton import Triton
from tests.e2e.client import Client, script

PRICES = [{"from": date(2020, 1, 1), "input": "1", "cached_input": "0.5", "output": "3"}]
FAILS = ("one", " two", {"error": "boom"})
NANO_PER_INPUT, NANO_PER_OUTPUT = 1000, 3000


@pytest.fixture(scope="module", params=["tunnel", "direct", "origin"])
def ledger_stack(
    request: pytest.FixtureRequest, triton: Triton, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStack]:
    """A stack of each wire whose model has prices, with a ledger of its own."""
    with LocalStack(
        tmp_path_factory.mktemp("ledger"),
        models=[replace(SCRIPTED, settings={"prices": PRICES})],
        wire=request.param,
        triton_address=f"127.0.0.1:{triton.grpc_port}",
    ) as stack:
        yield stack


@dataclass(frozen=True)
class Received:
    """What a client knows of its request: tokens as it was told, or none where nothing was sent to it."""

    request_id: str
    outcome: str
    input_tokens: int
    output_tokens: int
    stream: bool

    @property
    def price(self) -> int:
        """In nano-units."""
        return self.input_tokens * NANO_PER_INPUT + self.output_tokens * NANO_PER_OUTPUT


async def received(client: Client, body: dict[str, Any]) -> Received:
    """Send a request and read its answer to the end."""
    stream = body.get("stream", False)
    answer = await client.ask(body)
    request_id = answer.headers["x-request-id"]
    if answer.headers["content-type"].startswith("text/event-stream"):
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        (last,) = [event for event in events if event["type"] in ("response.completed", "response.failed")]
        code = events[-1]["code"] if events[-1]["type"] == "error" else last["response"]["status"]
        usage = last["response"]["usage"]
        return Received(request_id, code, usage["input_tokens"], usage["output_tokens"], stream)
    told = answer.json()
    if "error" in told and told["error"] is not None:
        return Received(request_id, told["error"]["code"], 0, 0, stream)
    return Received(request_id, told["status"], told["usage"]["input_tokens"], told["usage"]["output_tokens"], stream)


@pytest.fixture(scope="module")
def answers(ledger_stack: LocalStack) -> list[Received]:
    """Streamed, whole, failed and refused answers, as their clients received them."""

    async def ask() -> list[Received]:
        async with Client(ledger_stack) as client:
            bodies = [
                script("one", " two", " three", stream=True),
                script("one", " two", " three", " four"),
                script(*FAILS, stream=True),
                script(*FAILS),
                script({"error": "boom"}, stream=True),
                script("x", temperature=9),
            ]
            return [await received(client, body) for body in bodies]

    return asyncio.run(ask())


@pytest.fixture
async def feed(ledger_stack: LocalStack) -> AsyncIterator[Any]:
    """Reads the feed: the messages after a cursor."""
    metadata = [("authorization", f"Bearer {ledger_stack.api_key}")]
    async with grpc.aio.insecure_channel(ledger_stack.usage_feed, options=[("grpc.enable_http_proxy", 0)]) as channel:
        stream = channel.unary_stream(
            f"/{SERVICE}/Stream",
            request_serializer=StreamRequest.SerializeToString,
            response_deserializer=StreamResponse.FromString,
        )

        async def read(cursor: str = "") -> list[StreamResponse]:
            return [message async for message in stream(StreamRequest(cursor=cursor), metadata=metadata)]

        yield read


def as_received(record: UsageRecord) -> Received:
    return Received(record.request_id, record.outcome, record.input_tokens, record.output_tokens, record.stream)


async def settled(feed: Any, answers: list[Received]) -> list[StreamResponse]:
    """The feed once it has the records of all ``answers`` but the refused one, which had no reservation."""
    wanted = {answer.request_id for answer in answers[:-1]}
    async with asyncio.timeout(30):
        while True:
            messages: list[StreamResponse] = await feed()
            if wanted <= {message.record.request_id for message in messages}:
                return messages


async def test_the_feed_has_each_answer_once_as_its_client_received_it(feed: Any, answers: list[Received]) -> None:
    messages = await settled(feed, answers)
    found = {message.record.request_id: message.record for message in messages}
    assert len(found) == len(messages)
    assert [as_received(found[answer.request_id]) for answer in answers[:-1]] == answers[:-1]
    assert answers[-1].request_id not in found
    assert [answer.output_tokens > 0 for answer in answers] == [True, True, True, False, False, False]


async def test_each_cursor_goes_on_with_the_next_record(feed: Any, answers: list[Received]) -> None:
    messages = await settled(feed, answers)
    ids = [message.record.id for message in messages]
    for index, message in enumerate(messages):
        assert [rest.record.id for rest in await feed(message.cursor)] == ids[index + 1 :]


async def test_the_command_sums_what_clients_received(
    ledger_stack: LocalStack, feed: Any, answers: list[Received]
) -> None:
    messages = await settled(feed, answers)
    (row,) = command(ledger_stack.sidecar.config, "usage", "--by", "model")
    records = [message.record for message in messages]
    assert (row["model"], row["requests"], row["currency"]) == ("scripted", len(records), "USD")
    for name in ("input_tokens", "output_tokens"):
        assert row[name] == sum(getattr(record, name) for record in records)
    of_answers = {answer.request_id for answer in answers}
    others = [as_received(record) for record in records if record.request_id not in of_answers]
    price = sum(answer.price for answer in (*answers, *others))
    assert row["price"] == f"{price / 1e9:.9f}".rstrip("0")
    assert command(ledger_stack.sidecar.config, "reconcile") == {"findings": []}


async def test_envoys_access_log_says_the_same(ledger_stack: LocalStack, feed: Any, answers: list[Received]) -> None:
    await settled(feed, answers)
    wanted = {answer.request_id for answer in answers}
    async with asyncio.timeout(30):
        while True:
            lines = ledger_stack.access_log.read_text().splitlines(keepends=True)
            entries = {entry["request_id"]: entry for entry in (json.loads(line) for line in lines if line[-1] == "\n")}
            if wanted <= entries.keys():
                break
            await asyncio.sleep(0.1)
    (organization,) = {message.record.organization for message in await feed()}
    (key,) = {message.record.key for message in await feed()}
    for answer in answers:
        entry = entries[answer.request_id]
        assert (entry["organization"], entry["key"]) == (organization, key)
        assert entry["outcome"] == answer.outcome
        assert (entry["input_tokens"], entry["output_tokens"]) == (answer.input_tokens, answer.output_tokens)


async def test_a_session_of_the_admin_interface_is_taken_by_envoy(ledger_stack: LocalStack) -> None:
    url = f"http://{ledger_stack.admin}/admin/sessions"
    headers = {"authorization": f"Bearer {ledger_stack.api_key}"}
    async with aiohttp.ClientSession() as http:
        async with http.post(url, json={"organization": "local", "user": "alice"}, headers=headers) as made:
            assert made.status == 201
            session = await made.json()
        cookie = {"cookie": session["set_cookie"].partition(";")[0]}
        async with http.get(f"{ledger_stack.url}/models", headers=cookie) as models:
            assert models.status == 200
        async with http.delete(f"{url}/{session['id']}", headers=headers) as ended:
            assert ended.status == 200
        async with asyncio.timeout(10):
            while True:
                async with http.get(f"{ledger_stack.url}/models", headers=cookie) as models:
                    if models.status == 401:
                        break
                await asyncio.sleep(0.1)
