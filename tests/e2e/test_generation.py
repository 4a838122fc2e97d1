"""What agents need, on the real parts: every contract, reasoning, calls, and answers kept to a schema."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import jsonschema
import pytest

from stack.local import SCRIPTED_BY_CONTRACT, SMOLLM2_BY_CONTRACT, THINKING, LocalStack
from tests.e2e.client import Client, error_of, script

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
CLOCK = {"type": "function", "name": "get_time", "parameters": {"type": "object", "properties": {}}}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"$ref": "#/$defs/axis"}},
    "required": ["x", "y"],
    "additionalProperties": False,
    "$defs": {"axis": {"type": "string", "enum": ["up", "down"]}},
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TIME = '<tool_call>\n{"name": "get_time"}\n</tool_call>'

by_contract = pytest.mark.parametrize("model", [model.name for model in SCRIPTED_BY_CONTRACT.values()])


@pytest.fixture
async def client(stack: LocalStack) -> AsyncIterator[Client]:
    async with Client(stack) as client:
        yield client


@pytest.fixture(scope="module")
def guiding_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """The CPU model behind every contract."""
    models = list(SMOLLM2_BY_CONTRACT.values())
    with LocalStack(tmp_path_factory.mktemp("guiding"), models=models, workers=1) as stack:
        yield stack


@pytest.fixture
async def guiding(guiding_stack: LocalStack) -> AsyncIterator[Client]:
    async with Client(guiding_stack) as client:
        yield client


def json_schema(schema: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "name": "answer", "schema": schema}}


@by_contract
async def test_every_contract_streams_the_same_text_with_usage(client: Client, model: str) -> None:
    events = await client.events({**script("Grüße ", "an alle", " 👋"), "model": model})
    response = events[-1].data["response"]
    assert response["output"][0]["content"][0]["text"] == "Grüße an alle 👋"
    assert response["usage"]["input_tokens"] > 10
    assert response["usage"]["output_tokens"] >= 3


@by_contract
async def test_calls_are_items_on_every_contract(client: Client, model: str) -> None:
    body = {**script("Let me look.\n", {"split_ids": CALL}, "\n", TIME), "model": model, "tools": [WEATHER, CLOCK]}
    response = (await client.events(body))[-1].data["response"]
    assert [item["type"] for item in response["output"]] == ["message", "function_call", "function_call"]
    assert [(item["name"], item["arguments"]) for item in response["output"][1:]] == [
        ("get_weather", '{"city": "Paris"}'),
        ("get_time", "{}"),
    ]


async def test_one_call_at_a_time_stops_the_model_after_it(client: Client) -> None:
    body = script(CALL, TIME, {"sleep": 60}, tools=[WEATHER, CLOCK], parallel_tool_calls=False)
    response = (await client.events(body))[-1].data["response"]
    assert [item["name"] for item in response["output"]] == ["get_weather"]
    assert response["status"] == "completed"


async def test_a_call_that_the_limit_cuts_is_incomplete(client: Client) -> None:
    body = script({"split_ids": CALL}, tools=[WEATHER], max_output_tokens=18)
    response = (await client.events(body))[-1].data["response"]
    assert (response["status"], response["output"][-1]["status"]) == ("incomplete", "incomplete")


async def test_a_call_that_a_failure_cuts_is_never_shown_as_finished(client: Client) -> None:
    events = await client.events(script(CALL[:60], {"error": "boom"}, tools=[WEATHER]))
    assert events[-1].type == "error"
    assert not {"response.function_call_arguments.done", "response.output_item.done"} & {event.type for event in events}


async def test_reasoning_is_an_item_of_its_own(client: Client) -> None:
    body = {**script("<th", "ink>", "because", "</th", "ink>\n\n", "so"), "model": THINKING.name}
    response = (await client.events(body))[-1].data["response"]
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert response["output"][0]["content"] == [{"type": "reasoning_text", "text": "because"}]
    assert response["output"][1]["content"][0]["text"] == "so"
    assert 0 < response["usage"]["output_tokens_details"]["reasoning_tokens"] < response["usage"]["output_tokens"]


async def test_all_tokens_spent_in_reasoning_leave_only_the_reasoning(client: Client) -> None:
    body = {**script("<think>", {"split_ids": "one two three four"}, max_output_tokens=4), "model": THINKING.name}
    response = (await client.events(body))[-1].data["response"]
    assert [(item["type"], item["status"]) for item in response["output"]] == [("reasoning", "incomplete")]
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}


@pytest.mark.parametrize("contract", ["token_level", "ensemble", "vllm"])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "get_weather"}])
async def test_a_demanded_call_fits_its_schema(guiding: Client, contract: str, choice: Any) -> None:
    body = {
        "model": SMOLLM2_BY_CONTRACT[contract].name,
        "input": "What is the weather in Paris?",
        "tools": [WEATHER],
        "tool_choice": choice,
        "temperature": 0,
        "max_output_tokens": 200,
    }
    response = (await guiding.events(body))[-1].data["response"]
    (call,) = response["output"]
    assert (call["type"], call["name"], call["status"]) == ("function_call", "get_weather", "completed")
    jsonschema.validate(json.loads(call["arguments"]), WEATHER["parameters"])


@pytest.mark.parametrize("contract", ["token_level", "ensemble", "vllm"])
async def test_text_of_a_schema_is_valid(guiding: Client, contract: str) -> None:
    body = {
        "model": SMOLLM2_BY_CONTRACT[contract].name,
        "input": "Where is the point?",
        "text": json_schema(POINT),
        "temperature": 0,
        "max_output_tokens": 200,
    }
    response = (await guiding.ask(body)).json()
    assert response["status"] == "completed"
    jsonschema.validate(json.loads(response["output"][0]["content"][0]["text"]), POINT)


@pytest.mark.parametrize(
    ("demand", "param"),
    [
        ({"tools": [WEATHER], "tool_choice": "required"}, "tool_choice"),
        ({"text": json_schema(POINT)}, "text.format"),
    ],
)
async def test_a_runtime_without_guides_refuses_demands(guiding: Client, demand: dict[str, Any], param: str) -> None:
    answer = await guiding.ask({"model": SMOLLM2_BY_CONTRACT["llm_api"].name, "input": "x", **demand})
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["param"]) == (400, "unsupported_parameter", param)


async def test_text_that_breaks_its_schema_is_a_503_and_never_a_wrong_answer(client: Client) -> None:
    body = script("not JSON", text=json_schema(POINT))
    answer = await client.ask(body)
    assert (answer.status_code, error_of(answer)["code"]) == (503, "infer_backend_unavailable")
    assert answer.headers["x-should-retry"] == "false"


async def test_json_beside_tools_may_be_either(client: Client) -> None:
    settings = {"tools": [WEATHER], "text": json_schema(POINT)}
    text = (await client.ask(script('{"x": 1, "y": "up"}', **settings))).json()
    assert text["output"][0]["content"][0]["text"] == '{"x": 1, "y": "up"}'
    call = (await client.ask(script(CALL, **settings))).json()
    assert call["output"][0]["type"] == "function_call"


async def test_a_schema_that_no_grammar_can_be_made_of_is_refused(client: Client) -> None:
    answer = await client.ask(script("x", text=json_schema({"not": {"type": "string"}})))
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_request", "text.format.schema")
