"""Answers through all parts, whichever contract the model behind them speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from stack.local import SCRIPTED_BY_CONTRACT, LocalStack
from tests.e2e.client import Client, script


@pytest.fixture
async def client(stack: LocalStack) -> AsyncIterator[Client]:
    async with Client(stack) as client:
        yield client


@pytest.fixture(params=SCRIPTED_BY_CONTRACT)
def model(request: pytest.FixtureRequest) -> str:
    return SCRIPTED_BY_CONTRACT[request.param].name


async def test_an_answer_is_the_same_streamed_and_not(client: Client, model: str) -> None:
    body = script("Grüße ", "an alle ", "👋", model=model)
    events = await client.events(body)
    assert [event.data["delta"] for event in events if event.type.endswith("delta")] == ["Grüße ", "an alle ", "👋"]
    streamed, whole = events[-1].data["response"], (await client.ask(body)).json()
    assert streamed["output"][0]["content"] == whole["output"][0]["content"]
    assert streamed["usage"] == whole["usage"]
    assert whole["usage"]["input_tokens"] > 0 < whole["usage"]["output_tokens"]


async def test_an_answer_cut_at_its_limit_is_incomplete(client: Client, model: str) -> None:
    answer = (await client.ask(script({"split_ids": "one two three four"}, model=model, max_output_tokens=2))).json()
    assert (answer["status"], answer["usage"]["output_tokens"]) == ("incomplete", 2)
    assert answer["output"][0]["content"][0]["text"] == "one two"


async def test_the_operator_is_told_how_broken_characters_are_repaired(client: Client, stack: LocalStack) -> None:
    model = SCRIPTED_BY_CONTRACT["ensemble"].name
    answer = (await client.ask(script({"split_ids": "👩‍🚀"}, model=model))).json()
    assert "\ufffd" in answer["output"][0]["content"][0]["text"]
    log = (stack.run_dir / "sidecar.log").read_text()
    assert f"model {model}: Triton breaks characters into U+FFFD; set accumulate_tokens to true" in log
