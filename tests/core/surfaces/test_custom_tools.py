"""Custom tools on models of Triton: functions of one text to the model, the client's own types both ways."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conformance.stream import check_stream
from sidecar.exchange.commands import CallUpstream
from sidecar.generation.style import choose_style
from sidecar.responses.errors import ApiError
from sidecar.surfaces.bureau import BUREAU
from tests.core import kit
from tests.core.sse import parse
from tests.core.surfaces.bureau_requests import SERVED, accept, asked
from tests.core.surfaces.node_requests import CALL, OUTPUT, TOOL, USER

SHELL = {"type": "custom", "name": "shell", "description": "Runs a command."}
SHELL_CALL = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "shell", "input": 'ls "a"\n'}
SHELL_OUTPUT = {"type": "custom_tool_call_output", "call_id": "c2", "output": "a"}
CALLING = replace(SERVED, style=choose_style("", reasoning="none", calls="hermes"))
WRITTEN = '<tool_call>\n{"name": "shell", "arguments": {"input": "echo \\"hi\\"\\nls \\u00fc"}}\n</tool_call>'
INPUT = 'echo "hi"\nls ü'


def test_a_custom_tool_is_a_function_of_one_text() -> None:
    tools: list[Any] = accept(tools=[SHELL | {"format": {"type": "text"}}, TOOL]).tools
    shell, function = tools
    assert (shell.name, shell.description) == ("shell", "Runs a command.")
    assert shell.parameters["required"] == ["input"]
    assert shell.parameters["properties"]["input"]["type"] == "string"
    assert function.parameters is None


def test_what_a_client_says_of_parameters_is_nothing() -> None:
    tools: list[Any] = accept(tools=[SHELL | {"parameters": {"type": "object"}, "strict": True}]).tools
    (shell,) = tools
    assert shell.parameters["required"] == ["input"]
    assert not shell.strict


def test_earlier_calls_and_their_outputs_are_read() -> None:
    _, call, output, *_ = accept(tools=[SHELL, TOOL], input=[USER, SHELL_CALL, SHELL_OUTPUT, CALL, OUTPUT]).input
    assert json.loads(call.arguments) == {"input": 'ls "a"\n'}  # type: ignore[union-attr]
    assert output.output[0].text == "a"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("parameters", "code", "param"),
    [
        (
            {"tools": [SHELL | {"format": {"type": "grammar", "syntax": "lark", "definition": "x"}}]},
            "unsupported_parameter",
            "tools[0].format",
        ),
        ({"tools": [SHELL, TOOL | {"name": "shell"}]}, "invalid_request", "tools[1].name"),
        ({"tools": [SHELL], "tool_choice": {"type": "custom", "name": "x"}}, "invalid_request", "tool_choice"),
        ({"input": [SHELL_CALL]}, "invalid_request", "input"),
        ({"input": [SHELL_OUTPUT]}, "invalid_request", "input"),
        ({"input": [{**SHELL_CALL, "input": 1}, SHELL_OUTPUT]}, "invalid_request", "input[0].input"),
        ({"tools": [{"type": "custom"}]}, "invalid_request", "tools[0].name"),
    ],
)
def test_what_cannot_be_done_is_refused(parameters: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(ApiError) as refused:
        accept(**parameters)
    assert (refused.value.code, refused.value.param) == (code, param)


def test_a_tool_that_is_missing_is_called_what_it_is() -> None:
    for parameters, words in (
        ({"tools": [SHELL], "tool_choice": {"type": "custom", "name": "x"}}, "names a tool that is not in 'tools'"),
        ({"input": [SHELL_CALL]}, "No tool output found for custom tool call c2."),
        ({"input": [SHELL_OUTPUT]}, "No tool call found for custom tool call output with call_id c2."),
    ):
        with pytest.raises(ApiError) as refused:
            accept(**parameters)
        assert words in refused.value.message


def answered(written: str, *, each: bool = False, end: bool = True, **body: Any) -> bytes:
    played = kit.exchange(CALLING, BUREAU)
    call = kit.handle(played, asked(tools=[SHELL, TOOL], **body))
    assert isinstance(call[0], CallUpstream), call
    pieces = [kit.text(character) for character in written] if each else [kit.text(written)]
    commands = [command for piece in [*pieces, kit.final()] for command in kit.upstream(played, piece)]
    return kit.sent([*commands, *played.handle(kit.whole_end())])


@pytest.mark.parametrize("each", [False, True])
def test_a_call_is_streamed_as_the_client_knows_it(each: bool) -> None:
    body = answered(WRITTEN, each=each, stream=True)
    assert not check_stream(body)[1]
    events = parse(body)
    deltas = [event.data["delta"] for event in events if event.type == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == INPUT
    assert len(deltas) > 1 or not each
    (done,) = [event.data for event in events if event.type == "response.custom_tool_call_input.done"]
    assert done["input"] == INPUT
    (item,) = events[-1].data["response"]["output"]
    assert (item["type"], item["name"], item["input"], item["status"]) == (
        "custom_tool_call",
        "shell",
        INPUT,
        "completed",
    )
    assert item["id"].startswith("ctc_")


def test_what_comes_back_may_be_sent_again() -> None:
    response = json.loads(answered(WRITTEN))
    (item,) = response["output"]
    accept(tools=[SHELL], input=[USER, item, {**SHELL_OUTPUT, "call_id": item["call_id"]}])
    echoed = {"type": "custom", "name": "shell", "description": "Runs a command.", "format": {"type": "text"}}
    assert response["tools"][0] == echoed
    accept(tools=response["tools"])


def test_a_function_beside_it_is_called_as_functions_are() -> None:
    written = WRITTEN + '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    first, second = json.loads(answered(written))["output"]
    assert (first["type"], second["type"], second["arguments"]) == ("custom_tool_call", "function_call", "{}")


def test_a_choice_is_echoed() -> None:
    choice = {"type": "custom", "name": "shell"}
    assert BUREAU.new_response(accept(tools=[SHELL], tool_choice=choice), "resp_1", 0)["tool_choice"] == choice  # type: ignore[arg-type]
