"""What is billed, through real Envoy: the tokens that the client was given, and none that it was not."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stack.local import SCRIPTED_BY_CONTRACT, LocalStack
from tests.e2e.client import Client, eventually, script
from tests.e2e.ledger import LocalLedger

HANG = {"hang": True}


@pytest.fixture
def ledger(stack: LocalStack) -> LocalLedger:
    return LocalLedger(stack)


@pytest.fixture
async def client(stack: LocalStack) -> AsyncIterator[Client]:
    async with Client(stack) as client:
        yield client


def counts(record: dict[str, Any]) -> tuple[int, int]:
    return record["input_tokens"], record["output_tokens"]


def usage_of(usage: dict[str, Any]) -> tuple[int, int]:
    return usage["input_tokens"], usage["output_tokens"]


@pytest.mark.parametrize("contract", SCRIPTED_BY_CONTRACT)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_whole_answer_is_billed_as_it_is_reported(
    client: Client, ledger: LocalLedger, contract: str, stream: bool
) -> None:
    model = SCRIPTED_BY_CONTRACT[contract].name
    answer = await client.ask({**script("one", " two", " three"), "model": model, "stream": stream})
    last = json.loads(answer.text.rpartition("data: ")[2])
    response = last["response"] if stream else last
    record = await ledger.record(answer.headers["x-request-id"])
    assert counts(record) == usage_of(response["usage"])
    assert counts(record) > (0, 0)
    assert (record["model"], record["outcome"], bool(record["stream"])) == (model, "completed", stream)
    assert f"resp_{record['id']}" == response["id"]
    assert 0 < record["first_token_ms"] <= record["total_ms"]


async def test_who_leaves_after_5_of_100_tokens_pays_for_5(client: Client, ledger: LocalLedger) -> None:
    async with client.stream(script({"split_ids": " a b c d e"}, HANG, {"repeat": [95, " f", 0]})) as stream:
        await stream.until(b'" e"')
        request_id = stream.response.headers["x-request-id"]
    record = await ledger.record(request_id)
    assert record["output_tokens"] == 5
    assert record["input_tokens"] > 0
    assert record["outcome"] == "client_gone"


async def test_who_leaves_in_the_middle_pays_for_no_more_than_was_on_its_way(
    client: Client, ledger: LocalLedger
) -> None:
    async with client.stream(script({"repeat": [1000, " word", 0.02]})) as stream:
        await stream.until(b"output_text.delta")
        request_id = stream.response.headers["x-request-id"]
    record = await ledger.record(request_id)
    seen = stream.received.count(b"event: response.output_text.delta")
    assert seen <= record["output_tokens"] < 100


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_that_the_model_refuses_costs_nothing(client: Client, ledger: LocalLedger, stream: bool) -> None:
    answer = await client.ask(script({"error": "boom"}, stream=stream))
    assert answer.status_code == 503
    record = await ledger.record(answer.headers["x-request-id"])
    assert (counts(record), record["price"]) == ((0, 0), 0)
    assert record["outcome"] == "infer_backend_unavailable"
    assert record["first_token_ms"] is None


async def test_a_stream_that_fails_is_billed_as_far_as_it_came(client: Client, ledger: LocalLedger) -> None:
    answer = await client.ask(script("one", " two", {"error": "boom"}, stream=True))
    failed = next(json.loads(line[6:]) for line in answer.text.splitlines() if '"response.failed"' in line[6:])
    record = await ledger.record(answer.headers["x-request-id"])
    assert counts(record) == usage_of(failed["response"]["usage"])
    assert record["output_tokens"] == 2
    assert record["outcome"] == "infer_backend_unavailable"


async def test_an_answer_that_fails_before_anything_was_sent_costs_nothing(client: Client, ledger: LocalLedger) -> None:
    answer = await client.ask(script("one", " two", {"error": "boom"}))
    assert answer.status_code == 503
    record = await ledger.record(answer.headers["x-request-id"])
    assert (counts(record), record["outcome"]) == ((0, 0), "infer_backend_unavailable")


async def test_who_does_not_wait_for_a_whole_answer_pays_for_the_prompt(client: Client, ledger: LocalLedger) -> None:
    def records() -> list[dict[str, Any]]:
        return ledger.rows("SELECT * FROM usage_records WHERE outcome = 'client_gone' AND NOT stream")

    before = len(records())
    opened = "SELECT id FROM reservations WHERE settled_at IS NULL"
    request = asyncio.create_task(client.ask(script("some", " more", HANG)))
    await eventually(lambda: ledger.rows(opened), 30)
    await asyncio.sleep(0.5)
    request.cancel()
    await eventually(lambda: len(records()) > before, 30)
    record = records()[-1]
    assert record["input_tokens"] > 0
    assert record["output_tokens"] == 0


async def test_no_text_of_a_prompt_or_an_answer_is_stored_or_logged(
    client: Client, ledger: LocalLedger, stack: LocalStack
) -> None:
    word = f"quokka{secrets.token_hex(4)}"
    request_ids = []
    for steps in ([f" {word}"], [f" {word}", {"error": word}], [{"error": word}]):
        for stream in (False, True):
            answer = await client.ask(script(*steps, stream=stream, instructions=word))
            request_ids.append(answer.headers["x-request-id"])
    refused = await client.ask({"model": "scripted", "input": word, "temperature": word})
    assert refused.status_code == 400
    for request_id in request_ids:
        await ledger.record(request_id)
    # Envoy writes its log from time to time.
    await eventually(lambda: request_ids[0] in (stack.run_dir / "access.log").read_text(), 30)
    kept = {path.name: path.read_bytes() for path in stack.run_dir.rglob("*") if path.is_file()}
    told = {name for name, content in kept.items() if request_ids[0].encode() in content}
    assert {"access.log", "sidecar.log"} <= told
    assert {name for name in told if name.startswith("ledger.db")}
    assert {name for name, content in kept.items() if word.encode() in content} == set()
