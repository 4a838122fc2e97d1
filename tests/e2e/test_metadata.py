"""What the sidecar tells Envoy of an answer that is over, as Envoy's own access log has it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stack.first_key import ORGANIZATION, command
from stack.local import LocalStack
from tests.e2e.client import Client, eventually, script

FAILS = ("one", " two", {"error": "boom"})


@pytest.fixture(params=["stack", "direct_stack", "origin_stack"])
def either_stack(request: pytest.FixtureRequest) -> LocalStack:
    """A stack of each wire."""
    found: LocalStack = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def client(either_stack: LocalStack) -> AsyncIterator[Client]:
    async with Client(either_stack) as client:
        yield client


async def logged(stack: LocalStack, request_id: str) -> dict[str, Any]:
    """The line of a request in Envoy's access log, once it is written."""

    def find() -> dict[str, Any] | None:
        lines = stack.access_log.read_text().splitlines(keepends=True)
        entries = [json.loads(line) for line in lines if line.endswith("\n")]
        return next((entry for entry in entries if entry["request_id"] == request_id), None)

    entry: dict[str, Any] = await eventually(find, 30)
    return entry


@pytest.fixture
def organization(either_stack: LocalStack) -> str:
    """The id of the organization that asks."""
    organizations = command(either_stack.sidecar.config, "orgs", "list")["organizations"]
    return next(str(one["id"]) for one in organizations if one["name"] == ORGANIZATION)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_whole_answer(either_stack: LocalStack, client: Client, organization: str, stream: bool) -> None:
    answer = await client.ask(script("one", " two", " three", stream=stream))
    told = json.loads(answer.text.rpartition("data: ")[2])
    usage = (told["response"] if stream else told)["usage"]
    entry = await logged(either_stack, answer.headers["x-request-id"])
    assert entry["organization"] == organization
    assert entry["key"].startswith("key_")
    assert (entry["model"], entry["outcome"]) == ("scripted", "completed")
    assert (entry["input_tokens"], entry["output_tokens"]) == (usage["input_tokens"], usage["output_tokens"])
    assert min(usage["input_tokens"], usage["output_tokens"]) > 0


async def test_a_stream_that_fails(either_stack: LocalStack, client: Client) -> None:
    answer = await client.ask(script(*FAILS, stream=True))
    *_, failed, error = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    entry = await logged(either_stack, answer.headers["x-request-id"])
    assert (entry["model"], entry["outcome"]) == ("scripted", error["code"])
    usage = failed["response"]["usage"]
    assert (entry["input_tokens"], entry["output_tokens"]) == (usage["input_tokens"], usage["output_tokens"])
    assert usage["output_tokens"] == 2


@pytest.mark.parametrize(
    "body", [script(*FAILS), script({"error": "boom"}, stream=True), script("x", max_output_tokens=0)]
)
async def test_a_plain_error_has_used_nothing(
    either_stack: LocalStack, client: Client, organization: str, body: dict[str, Any]
) -> None:
    answer = await client.ask(body)
    entry = await logged(either_stack, answer.headers["x-request-id"])
    assert (entry["status"], entry["outcome"]) == (answer.status_code, answer.json()["error"]["code"])
    assert (entry["organization"], entry["input_tokens"], entry["output_tokens"]) == (organization, 0, 0)


async def test_a_client_that_leaves_is_logged_without(either_stack: LocalStack, client: Client) -> None:
    async with client.stream(script({"repeat": [1000, "word ", 0.02]})) as stream:
        await stream.until(b"word")
        request_id = stream.response.headers["x-request-id"]
    entry = await logged(either_stack, request_id)
    assert (entry["model"], entry["output_tokens"]) == (None, None)
