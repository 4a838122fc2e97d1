"""What a request demands of its answer: it is asked of the model, looked at in the end, and told as it was applied."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sidecar.backends.triton.contracts.token_level import TokenLevel
from sidecar.exchange.catalog import ServedModel
from sidecar.exchange.exchange import Exchange
from sidecar.generation.style import choose_style
from tests.core import kit
from tests.core.sse import parse

TOOL = {
    "type": "function",
    "name": "f",
    "strict": True,
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}
SCHEMA = {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object", "required": ["a"]}}}
HERMES = choose_style("", reasoning="none", calls="hermes")


def model(*, guides: bool) -> ServedModel:
    plain = kit.model().contract
    assert isinstance(plain, TokenLevel)
    return kit.model(contract=replace(plain, guides=guides), style=HERMES, context_length=10_000, unguided="prompt")


def answer(*written: str, guides: bool = True, **body: Any) -> tuple[Exchange, list[Any]]:
    """An exchange whose model has written this, and its commands."""
    pieces = [*map(kit.text, written), kit.final()]
    return kit.play(pieces, of=kit.exchange(model(guides=guides)), **body)


def written_call(arguments: str) -> str:
    return f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>'


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "f"}])
def test_a_demanded_call_that_was_not_made_is_not_to_be_retried(choice: object) -> None:
    exchange, commands = answer("Sorry.", tools=[TOOL], tool_choice=choice)
    reply = kit.reply(commands)
    assert (reply.status, reply.headers["x-should-retry"]) == (503, "false")
    assert "retry-after" not in reply.headers
    assert exchange.report.missed_call


def test_of_a_stream_it_is_only_noted() -> None:
    exchange, commands = answer("Sorry.", tools=[TOOL], tool_choice="required", stream=True)
    assert parse(kit.sent(commands))[-1].type == "response.completed"
    assert exchange.report.missed_call


def test_a_call_that_was_cut_is_no_call_that_was_not_made() -> None:
    exchange, _ = answer("Sor", tools=[TOOL], tool_choice="required", max_output_tokens=3)
    assert (exchange.report.outcome, exchange.report.missed_call) == ("incomplete", False)


@pytest.mark.parametrize(("arguments", "broken"), [('{"a": 1}', 0), ('{"a": "one"}', 1), ("{}", 1)])
def test_arguments_of_a_strict_function_that_nothing_constrained_are_checked(arguments: str, broken: int) -> None:
    exchange, commands = answer(written_call(arguments), guides=False, tools=[TOOL])
    (call,) = json.loads(kit.sent(commands))["output"]
    assert (call["arguments"], call["status"]) == (arguments, "completed")
    assert exchange.report.broken_arguments == broken


@pytest.mark.parametrize(
    ("guides", "choice", "applied"), [(True, "required", True), (False, "required", False), (False, "auto", False)]
)
def test_the_echo_of_strict_is_what_was_applied(guides: bool, choice: str, applied: bool) -> None:
    arguments = written_call('{"a": 1}') if not guides else '{"name": "f", "arguments": {"a": 1}}'
    _, commands = answer(arguments, guides=guides, tools=[TOOL], tool_choice=choice)
    (echoed,) = json.loads(kit.sent(commands))["tools"]
    assert echoed["strict"] is applied
    assert echoed["parameters"] == TOOL["parameters"]


def test_a_text_that_breaks_its_format_is_not_to_be_retried() -> None:
    exchange, commands = answer("Sorry.", text=SCHEMA)
    reply = kit.reply(commands)
    assert (reply.status, reply.headers["x-should-retry"]) == (503, "false")
    assert exchange.report.broke_schema


def test_an_answer_that_would_take_too_long_to_check_is_taken_and_noted() -> None:
    schema = {"type": "array", "items": {"type": "string", "pattern": "^[01]*1[01]{30}$"}}
    counted = "".join(f"{number:b}" for number in range(1, 500))
    exchange, commands = answer(
        json.dumps([counted]), text={"format": {"type": "json_schema", "name": "n", "schema": schema}}
    )
    assert kit.sent(commands)
    assert exchange.report.unchecked
    assert not exchange.report.broke_schema


def test_a_guided_answer_has_no_reasoning_phase_and_says_so() -> None:
    _, guided = answer('{"a": 1}', text=SCHEMA, reasoning={"effort": "high"})
    assert json.loads(kit.sent(guided))["reasoning"]["effort"] == "none"
    _, free = answer("Hi", reasoning={"effort": "high"})
    assert json.loads(kit.sent(free))["reasoning"]["effort"] == "high"
