"""Limits, quotas and credits through real Envoy: who is refused, in what words, and who may come again at once.

Each test has a model of its own, which is the scripted one under another name, with limits of its own.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import httpx2
import openai
import pytest

from stack.local import SCRIPTED, LocalStack
from stack.triton import Triton
from tests.e2e.client import Client, error_of, eventually, script
from tests.e2e.ledger import LocalLedger

HANG = {"hang": True}
# Of so many per minute none comes back while a test runs.
LIMITS: dict[str, dict[str, Any]] = {
    "few-requests": {"requests_per_minute": 2},
    "few-tokens": {"tokens_per_minute": 5000},
    "one-at-a-time": {"concurrent_requests": 1},
    "quota": {"period": "month", "period_tokens": 500},
    "both": {"requests_per_minute": 1000, "tokens_per_minute": 200_000},
}
PRICES = [{"from": "2020-01-01", "input": "0.15", "cached_input": "0.075", "output": "0.60"}]


def named(name: str, **settings: Any) -> Any:
    return replace(SCRIPTED, name=name, settings=settings)


@pytest.fixture(scope="module")
def limited(triton: Triton, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    models = [SCRIPTED, *(named(name) for name in LIMITS), named("priced", prices=PRICES)]
    address = f"127.0.0.1:{triton.grpc_port}"
    with LocalStack(tmp_path_factory.mktemp("limited"), models=models, triton_address=address) as stack:
        ledger = LocalLedger(stack)
        for name, limits in LIMITS.items():
            ledger.limit(name, **limits)
        yield stack


@pytest.fixture(scope="module")
def queueing(triton: Triton, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    address = f"127.0.0.1:{triton.grpc_port}"
    settings = {"admission": {"queue_seconds": 30, "defaults": {"concurrent_requests": 1}}}
    with LocalStack(
        tmp_path_factory.mktemp("queueing"),
        models=[SCRIPTED],
        triton_address=address,
        workers=1,
        sidecar_settings=settings,
    ) as stack:
        yield stack


@pytest.fixture
def ledger(limited: LocalStack) -> LocalLedger:
    return LocalLedger(limited)


@pytest.fixture
async def client(limited: LocalStack) -> AsyncIterator[Client]:
    async with Client(limited) as client:
        # Each worker knows of the limits at the latest three seconds after they were set.
        async with asyncio.timeout(30):
            while not all(map(tells_limits, await asyncio.gather(*(client.ask(ask("both", "ok")) for _ in range(8))))):
                await asyncio.sleep(0.1)
        yield client


def tells_limits(answer: httpx2.Response) -> bool:
    return "x-ratelimit-limit-requests" in answer.headers


def ask(model: str, *steps: Any, **body: Any) -> dict[str, Any]:
    return {**script(*steps, **body), "model": model}


def refusal(answer: httpx2.Response, status: int, code: str) -> str:
    """The words of an answer that must be a refusal."""
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["type"], error["param"]) == (
        status,
        code,
        "rate_limit_error",
        None,
    )
    return str(error["message"])


async def test_answers_tell_how_the_client_stands_with_its_limits(client: Client) -> None:
    for stream in (False, True):
        answer = await client.ask(ask("both", "one", max_output_tokens=100, stream=stream))
        assert answer.status_code == 200
        assert answer.headers["x-ratelimit-limit-requests"] == "1000"
        assert 0 < int(answer.headers["x-ratelimit-remaining-requests"]) < 1000
        assert answer.headers["x-ratelimit-reset-requests"].endswith(("s", "ms"))
        assert answer.headers["x-ratelimit-limit-tokens"] == "200000"
        assert 190_000 < int(answer.headers["x-ratelimit-remaining-tokens"]) < 199_900
        assert answer.headers["x-ratelimit-reset-tokens"].endswith(("s", "ms"))


async def test_errors_after_admission_tell_so_too(client: Client) -> None:
    answer = await client.ask(ask("both", {"error": "boom"}))
    assert answer.status_code == 503
    assert answer.headers["x-ratelimit-limit-requests"] == "1000"


async def test_without_limits_nothing_is_told(client: Client) -> None:
    answer = await client.ask(script("one"))
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("x-ratelimit")]


async def test_too_many_requests(client: Client, limited: LocalStack) -> None:
    answers = [await client.ask(ask("few-requests", "ok")) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    refused = answers[-1]
    words = refusal(refused, 429, "rate_limited")
    seconds = int(refused.headers["retry-after"])
    assert words == f"2 requests per minute allowed on few-requests; retry in {seconds} seconds"
    assert 20 <= seconds <= 30
    assert "x-should-retry" not in refused.headers
    assert refused.headers["x-ratelimit-limit-requests"] == "2"
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    async with openai.AsyncOpenAI(base_url=limited.url, api_key=limited.api_key, max_retries=0) as sdk:
        with pytest.raises(openai.RateLimitError) as error:
            await sdk.responses.create(model="few-requests", input="hello")
    assert error.value.code == "rate_limited"
    assert int(error.value.response.headers["retry-after"]) <= seconds


async def test_tokens_that_were_not_used_come_back_at_once(client: Client, ledger: LocalLedger) -> None:
    for _ in range(3):
        answer = await client.ask(ask("few-tokens", "three short words", max_output_tokens=4000))
        assert answer.status_code == 200
        await ledger.settled()


async def test_tokens_that_are_reserved_are_not_there(client: Client, ledger: LocalLedger) -> None:
    async with client.stream(ask("few-tokens", "one", HANG, max_output_tokens=4000)) as stream:
        await stream.until(b"output_text.delta")
        refused = await client.ask(ask("few-tokens", "ok", max_output_tokens=4000))
        words = refusal(refused, 429, "rate_limited")
        seconds = int(refused.headers["retry-after"])
        assert words == f"5000 tokens per minute allowed on few-tokens; retry in {seconds} seconds"
        assert (await client.ask(ask("few-tokens", "ok", max_output_tokens=100))).status_code == 200
    await ledger.settled()
    assert (await client.ask(ask("few-tokens", "ok", max_output_tokens=4000))).status_code == 200


async def test_what_can_never_fit_is_not_told_to_retry(client: Client) -> None:
    refused = await client.ask(ask("few-tokens", "ok", max_output_tokens=6000))
    words = refusal(refused, 429, "rate_limited")
    assert words.startswith("5000 tokens per minute allowed on few-tokens, fewer than the 60")
    assert words.endswith("that this request needs; it can never be admitted")
    assert refused.headers["x-should-retry"] == "false"
    assert "retry-after" not in refused.headers


async def test_too_many_at_a_time(client: Client, ledger: LocalLedger) -> None:
    async with client.stream(ask("one-at-a-time", "one", HANG)) as stream:
        await stream.until(b"output_text.delta")
        refused = await client.ask(ask("one-at-a-time", "ok"))
        words = refusal(refused, 429, "concurrency_limited")
        assert words == "1 request at a time allowed on one-at-a-time; retry when it has ended"
        assert refused.headers["retry-after"] == "1"
    await ledger.settled()
    assert (await client.ask(ask("one-at-a-time", "ok"))).status_code == 200


async def test_a_quota_that_is_used_up(client: Client, ledger: LocalLedger) -> None:
    answers = [await client.ask(ask("quota", {"repeat": [60, "word ", 0]}, max_output_tokens=100))]
    while answers[-1].status_code == 200:
        await ledger.settled()
        answers.append(await client.ask(ask("quota", {"repeat": [60, "word ", 0]}, max_output_tokens=100)))
    assert len(answers) > 2
    used = sum(answer.json()["usage"]["total_tokens"] for answer in answers[:-1])
    words = refusal(answers[-1], 429, "quota_exceeded")
    assert words.startswith(f"500 tokens per month allowed on quota, of which {500 - used} are left")
    assert answers[-1].headers["x-should-retry"] == "false"
    assert "retry-after" not in answers[-1].headers


async def test_credits(client: Client, ledger: LocalLedger) -> None:
    assert (await client.ask(ask("priced", "ok"))).status_code == 200
    await ledger.settled()
    (owner,) = ledger.rows("SELECT DISTINCT organization_id AS id FROM usage_records WHERE model = 'priced'")
    ledger.execute("UPDATE organizations SET prepaid = true WHERE id = :id", id=owner["id"])
    while (refused := await client.ask(ask("priced", "ok", max_output_tokens=1000))).status_code == 200:
        await asyncio.sleep(0.1)
    assert refusal(refused, 402, "credits_exhausted") == "The organization's credits do not cover this request"
    assert "retry-after" not in refused.headers
    ledger.execute("UPDATE accounts SET balance = 1000000 WHERE organization_id = :id", id=owner["id"])
    answer = await client.ask(ask("priced", "three short words", max_output_tokens=1000))
    usage = answer.json()["usage"]
    record = await ledger.record(answer.headers["x-request-id"])
    assert record["price"] == usage["input_tokens"] * 150 + usage["output_tokens"] * 600
    (account,) = ledger.rows("SELECT balance, held FROM accounts")
    assert account == {"balance": 1_000_000 - record["price"], "held": 0}
    ledger.execute("UPDATE organizations SET prepaid = false")


async def test_who_waits_is_admitted_as_soon_as_there_is_room(queueing: LocalStack) -> None:
    ledger = LocalLedger(queueing)
    async with Client(queueing) as client:
        async with client.stream(script("one", HANG)) as stream:
            await stream.until(b"output_text.delta")
            waiting = [asyncio.create_task(client.ask(script("ok"))) for _ in range(4)]
            gone = asyncio.create_task(client.ask(script("ok")))
            await asyncio.sleep(0.5)
            assert not any(task.done() for task in waiting)
            # It gives its place in the line back.
            gone.cancel()
        assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200] * 4
        await ledger.settled()
    assert {row["level"] for row in ledger.rows("SELECT level FROM balances WHERE kind = 'concurrent'")} == {0}


async def test_nothing_reaches_the_model_that_cannot_be_accounted_for(
    own_stack: LocalStack,
) -> None:
    ledger = LocalLedger(own_stack)
    async with Client(own_stack) as client:
        assert (await client.ask(script("ok"))).status_code == 200
        await ledger.settled()
        begun = own_stack.scripted_events.read_text().count('"start"')
        other = sqlite3.connect(ledger.file, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        refused = await client.ask(script("ok"))
        other.execute("ROLLBACK")
        other.close()
        assert (refused.status_code, error_of(refused)["code"]) == (503, "node_unavailable")
        assert "retry-after" in refused.headers
        assert own_stack.scripted_events.read_text().count('"start"') == begun

        async def works() -> bool:
            return (await client.ask(script("ok"))).status_code == 200

        async with asyncio.timeout(30):
            while not await works():
                await asyncio.sleep(0.1)
        await eventually(lambda: not ledger.rows("SELECT id FROM reservations WHERE settled_at IS NULL"), 30)
