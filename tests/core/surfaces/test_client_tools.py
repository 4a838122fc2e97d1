"""``local_shell`` and ``apply_patch`` on models of Triton: functions to the model, the client's own types both ways."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.stream import check_stream
from sidecar.exchange.commands import CallUpstream
from sidecar.generation.style import choose_style
from sidecar.responses.errors import ApiError
from sidecar.surfaces.bureau import BUREAU
from tests.core import kit
from tests.core.splits import split_at
from tests.core.sse import parse
from tests.core.surfaces.bureau_requests import SERVED, accept, asked
from tests.core.surfaces.node_requests import TOOL, USER

SHELL, PATCH = {"type": "local_shell"}, {"type": "apply_patch"}
ACTION = {"type": "exec", "command": ["ls", "-l"], "env": {}, "working_directory": "/tmp"}
OPERATION = {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+ü\n"}
SHELL_CALL = {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "status": "completed", "action": ACTION}
SHELL_OUTPUT = {"type": "local_shell_call_output", "call_id": "c1", "output": "a.py"}
PATCH_CALL = {"type": "apply_patch_call", "call_id": "c2", "status": "completed", "operation": OPERATION}
PATCH_OUTPUT = {"type": "apply_patch_call_output", "call_id": "c2", "status": "completed"}
CALLING = replace(SERVED, style=choose_style("", reasoning="none", calls="hermes"))


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"


LIST = call("local_shell", command=["ls", "-l"], working_directory="/tmp")
CHANGE = call("apply_patch", **OPERATION)


def answered(*pieces: str, **body: Any) -> bytes:
    played = kit.exchange(CALLING, BUREAU)
    upstream = kit.handle(played, asked(tools=[SHELL, PATCH, TOOL], **body))
    assert isinstance(upstream[0], CallUpstream), upstream
    frames = [*map(kit.text, filter(None, pieces)), kit.final()]
    commands = [command for frame in frames for command in kit.upstream(played, frame)]
    return kit.sent([*commands, *played.handle(kit.whole_end())])


def output(*pieces: str, **body: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(answered(*pieces, **body))["output"]
    return items


def test_each_is_a_function_of_a_fixed_schema_that_is_kept_to() -> None:
    tools: list[Any] = accept(tools=[SHELL | {"name": "x", "parameters": {}}, PATCH]).tools
    shell, patch = tools
    assert (shell.name, shell.strict, shell.parameters["required"]) == ("local_shell", True, ["command"])
    assert (patch.name, patch.strict) == ("apply_patch", True)
    assert patch.parameters["properties"]["type"]["enum"] == ["create_file", "update_file", "delete_file"]


def test_earlier_calls_and_their_outputs_are_read() -> None:
    items: list[Any] = accept(input=[USER, SHELL_CALL, SHELL_OUTPUT, PATCH_CALL, PATCH_OUTPUT]).input
    _, listed, listing, changed, came_of_it = items
    assert (listed.name, listed.arguments) == ("local_shell", '{"command": ["ls", "-l"], "working_directory": "/tmp"}')
    assert listing.output[0].text == "a.py"
    assert (changed.name, json.loads(changed.arguments)) == ("apply_patch", OPERATION)
    assert came_of_it.output[0].text == "completed"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"status": "failed"}, "failed"),
        ({"status": "failed", "output": "no such file"}, "failed\nno such file"),
        ({"status": "completed", "output": ""}, "completed"),
        ({"status": "completed", "output": "done"}, "done"),
    ],
)
def test_the_model_reads_what_came_of_a_change(given: dict[str, str], text: str) -> None:
    items: list[Any] = accept(input=[USER, PATCH_CALL, PATCH_OUTPUT | given]).input
    assert items[-1].output[0].text == text


def test_a_file_is_deleted_without_a_diff() -> None:
    deleting = {"type": "delete_file", "path": "a.py"}
    items: list[Any] = accept(input=[USER, PATCH_CALL | {"operation": deleting}, PATCH_OUTPUT]).input
    assert json.loads(items[1].arguments) == {**deleting, "diff": ""}
    (item,) = output(call("apply_patch", **deleting, diff=""))
    assert item["operation"] == deleting


def test_an_output_may_name_its_call_as_its_id_and_may_be_a_function_s() -> None:
    accept(input=[USER, SHELL_CALL, {"type": "local_shell_call_output", "id": "c1", "output": "{}"}])
    accept(input=[USER, SHELL_CALL, {"type": "function_call_output", "call_id": "c1", "output": "{}"}])
    nulls = {"env": None, "timeout_ms": None, "user": None}
    accept(input=[USER, SHELL_CALL | {"action": ACTION | nulls}, SHELL_OUTPUT])


@pytest.mark.parametrize(
    ("parameters", "code", "param"),
    [
        ({"tools": [SHELL, SHELL]}, "invalid_request", "tools[1]"),
        ({"tools": [SHELL, TOOL | {"name": "local_shell"}]}, "invalid_request", "tools[1].name"),
        ({"tools": [SHELL], "tool_choice": PATCH}, "invalid_request", "tool_choice"),
        ({"tools": [SHELL], "tool_choice": SHELL}, "unsupported_parameter", "tool_choice"),
        ({"input": [SHELL_CALL | {"action": {"command": "ls"}}]}, "invalid_request", "input[0].action.command"),
        ({"input": [SHELL_CALL | {"action": ACTION | {"env": {"A": 1}}}]}, "invalid_request", "input[0].action.env"),
        (
            {"input": [SHELL_CALL | {"action": ACTION | {"type": "run"}}]},
            "invalid_request",
            "input[0].action.type",
        ),
        ({"input": [{"type": "local_shell_call", "call_id": "c"}]}, "invalid_request", "input[0].action"),
        ({"input": [PATCH_CALL | {"operation": {"type": "move"}}]}, "invalid_request", "input[0].operation.type"),
        (
            {"input": [PATCH_CALL | {"operation": {"type": "create_file", "path": "a"}}]},
            "invalid_request",
            "input[0].operation.diff",
        ),
        ({"input": [PATCH_CALL, PATCH_OUTPUT | {"status": "done"}]}, "invalid_request", "input[1].status"),
        ({"input": [{"type": "local_shell_call_output", "output": ""}]}, "invalid_request", "input[0].call_id"),
    ],
)
def test_what_cannot_be_is_refused(parameters: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(ApiError) as refused:
        accept(**parameters)
    assert (refused.value.code, refused.value.param) == (code, param)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([SHELL_CALL], "No tool output found for local shell call c1."),
        ([PATCH_OUTPUT], "No tool call found for apply patch call output with call_id c2."),
        ([SHELL_CALL, SHELL_CALL], "Two local_shell_call items have the call_id c1."),
    ],
)
def test_a_call_and_its_output_are_named_by_their_type(items: list[Any], words: str) -> None:
    with pytest.raises(ApiError) as refused:
        accept(input=[USER, *items])
    assert words in refused.value.message


@settings(max_examples=30)
@given(cuts=st.lists(st.integers(0, 300), max_size=20))
def test_any_split_of_what_the_model_writes_gives_the_same_items(cuts: list[int]) -> None:
    body = answered(*split_at(LIST + CHANGE, cuts), stream=True)
    assert not check_stream(body)[1]
    events = [event for event in parse(body) if "output_item" in event.type]
    assert [event.type.rpartition(".")[2] for event in events] == ["added", "done"] * 2
    listing, listed, changing, changed = [event.data["item"] for event in events]
    assert listing["action"] == {"type": "exec", "command": [], "env": {}}
    assert (listed["type"], listed["action"], listed["id"][:4]) == ("local_shell_call", ACTION, "lsh_")
    assert changing["operation"] == OPERATION | {"diff": ""}
    assert (changed["type"], changed["operation"], changed["id"][:4]) == ("apply_patch_call", OPERATION, "apc_")
    assert listing["status"] == changing["status"] == "in_progress"
    assert listed["status"] == changed["status"] == "completed"


def test_what_comes_back_may_be_sent_again() -> None:
    response = json.loads(answered(LIST, CHANGE, call("f")))
    listed, changed, called = response["output"]
    assert called["type"] == "function_call"
    results = [
        {"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "x", "status": "completed"}
        for item in response["output"]
    ]
    accept(tools=response["tools"], input=[USER, listed, changed, called, *results])
    assert response["tools"][:2] == [SHELL, PATCH]


def test_a_choice_is_echoed() -> None:
    request: Any = accept(tools=[SHELL, PATCH], tool_choice=PATCH)
    assert BUREAU.new_response(request, "resp_1", 0)["tool_choice"] == PATCH


def test_arguments_that_are_no_action_are_told_where_they_do_no_harm() -> None:
    shell, patch = output(call("local_shell", command="rm -rf /"), call("apply_patch", type="create_file", path="a"))
    assert shell["action"] == {"type": "exec", "command": ['{"command": "rm -rf /"}'], "env": {}}
    assert patch["operation"] == {"type": "update_file", "path": "", "diff": '{"type": "create_file", "path": "a"}'}


def test_a_number_in_quotes_is_a_number() -> None:
    (item,) = output(call("local_shell", command=["ls"], timeout_ms="1000", user=None))
    assert item["action"] == {"type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 1000}


def test_half_of_a_command_is_not_told() -> None:
    body = answered("Look:\n" + LIST[:-30], stream=True, max_output_tokens=70)
    assert not check_stream(body)[1]
    response = parse(body)[-1].data["response"]
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in response["output"]] == ["message"]


def test_a_failure_in_mid_call_leaves_it_out() -> None:
    played = kit.exchange(CALLING, BUREAU)
    kit.handle(played, asked(tools=[SHELL], stream=True))
    commands = kit.upstream(played, kit.text(LIST[:-30])) + kit.upstream(played, kit.failure("gone"))
    assert not [event for event in parse(kit.sent(commands)) if "output_item" in event.type]


def test_arguments_that_do_not_fit_are_counted() -> None:
    played = kit.exchange(CALLING, BUREAU)
    kit.handle(played, asked(tools=[SHELL]))
    for frame in (kit.text(call("local_shell", command="ls")), kit.final()):
        kit.upstream(played, frame)
    played.handle(kit.whole_end())
    assert played.report.broken_arguments == 1
