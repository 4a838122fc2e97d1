"""The node surface's requests: every form that clients send is read, whatever they leave out or add."""

from typing import Any

import pytest

from sidecar.config.model import RequestLimits
from sidecar.exchange.commands import CallUpstream
from sidecar.prompts.conversation import to_turns
from sidecar.prompts.features import detect_features
from sidecar.prompts.template import ChatTemplate
from sidecar.responses.errors import ApiError
from sidecar.responses.items import AssistantMessage, FunctionCallOutput, InputMessage
from sidecar.responses.parts import InputText
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces.limits import check_limits
from sidecar.surfaces.node import NODE
from tests.core import kit
from tests.core.prompts.chat_models import TOOLS
from tests.core.surfaces.node_requests import CALL, OUTPUT, TOOL, USER, accept, levels, schema_format

ACCEPTED: dict[str, dict[str, Any]] = {
    "item without type": {"input": [USER]},
    "null members of an item": {"input": [USER | {"type": None, "id": None, "status": None}]},
    "all roles of input": {
        "input": [{"type": "message", "role": role, "content": "x"} for role in ("user", "system", "developer")]
    },
    "two user messages in a row": {"input": [USER, USER]},
    "no parts": {"input": [{"role": "user", "content": []}]},
    "image as a data URL": {
        "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "DATA:image/png;base64,AA"}]}]
    },
    "image as a URL, with detail": {
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_image", "image_url": "https://a/b", "detail": "original", "file_id": None}],
            }
        ]
    },
    "assistant text as a string": {"input": [{"role": "assistant", "content": "yes"}, USER]},
    "assistant parts as SDKs echo them": {
        "input": [
            {
                "role": "assistant",
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "phase": "final_answer",
                "content": [
                    {"type": "output_text", "text": "a", "annotations": [], "logprobs": [], "parsed": {"a": 1}},
                    {"type": "refusal", "refusal": "no"},
                ],
            },
            USER,
        ]
    },
    "replayed turn without ids and status": {
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yo"}]},
            CALL,
            OUTPUT,
        ]
    },
    "unknown members of a call": {"input": [CALL | {"parsed_arguments": {}, "async": None}, OUTPUT]},
    "output before its call": {"input": [OUTPUT, CALL]},
    "empty output": {"input": [CALL, OUTPUT | {"output": ""}]},
    "output as a list of parts": {"input": [CALL, OUTPUT | {"output": [{"type": "input_text", "text": "{}"}]}]},
    "output with another model's text": {
        "input": [CALL, OUTPUT | {"output": [{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}]}]
    },
    "empty reasoning": {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}, USER]},
    "reasoning in all its forms": {
        "input": [
            {"type": "reasoning", "content": None, "summary": None, "encrypted_content": "x"},
            {"type": "reasoning", "content": [], "status": "in_progress"},
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "a"}] * 2},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]},
            USER,
        ]
    },
    "empty settings": {"tools": [], "tool_choice": "auto", "text": {}, "include": []},
    "tool settings without tools": {"tool_choice": "none", "parallel_tool_calls": False},
    "all members of a tool, chosen by name": {
        "tools": [
            TOOL
            | {
                "description": "d",
                "parameters": {"$schema": "x", "type": "object", "title": "T", "default": None},
                "strict": True,
                "allowed_callers": ["direct"],
                "defer_loading": False,
                "output_schema": {},
            }
        ],
        "tool_choice": {"type": "function", "name": "f"},
    },
    "tools and a format": {"tools": [TOOL], "tool_choice": "required", "text": schema_format()},
    "schema of 32 levels": {"text": schema_format(levels(32), strict=None, description=None)},
    "JSON mode": {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
    "reasoning": {"reasoning": {"effort": "xhigh", "summary": "auto", "generate_summary": "concise"}},
    "reasoning settings without effect": {"reasoning": {"context": "all_turns", "mode": "x"}},
    "known includes": {"include": ["reasoning.encrypted_content", "file_search_call.results"]},
    "lowest values": {"temperature": 0, "top_p": 0, "max_output_tokens": 1},
    "highest values": {"temperature": 2, "top_p": 1, "max_output_tokens": 10**12},
    "metadata": {"metadata": {f"{n:064}": "v" * 512 for n in range(16)}},
    "values without effect": {"truncation": "disabled", "background": False, "store": True},
    "identifiers": {"user": "u", "safety_identifier": "s", "prompt_cache_key": "p", "service_tier": "flex"},
    "stream options": {"stream": True, "stream_options": {"include_obfuscation": False}},
    "unlisted, without effect": {"client_metadata": {"a": "b"}, "prompt_cache_retention": "24h"},
    "unlisted, neutral": {"context_management": [], "frequency_penalty": 0, "presence_penalty": 0.0},
    "unlisted, but null": {"anything": None},
}


@pytest.mark.parametrize("parameters", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepts(parameters: dict[str, Any]) -> None:
    assert accept(**parameters).model == "m"


@pytest.mark.parametrize("name", [name for name in ACCEPTED if "without effect" in name or name == "identifiers"])
def test_what_has_no_effect_keeps_no_request_from_its_model(name: str) -> None:
    (command,) = kit.handle(kit.exchange(), kit.request(**ACCEPTED[name]))
    assert isinstance(command, CallUpstream)


@pytest.mark.parametrize("name", sorted(set(ResponsesRequest.model_fields) - {"model", "input"}))
def test_null_equals_absent(name: str) -> None:
    assert accept(**{name: None}) == accept()


def test_null_equals_absent_at_every_depth() -> None:
    nulls = {
        "text": {"format": None, "verbosity": None},
        "reasoning": {"effort": None, "summary": None},
        "stream_options": {"include_obfuscation": None},
        "tools": [TOOL | {"description": None, "parameters": None, "strict": None}],
    }
    assert accept(**nulls) == accept(tools=[TOOL], stream_options={})


def test_null_inside_a_schema_is_kept() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [None, "x"], "default": None}}}
    assert accept(tools=[TOOL | {"parameters": schema}]).tools[0].parameters == schema


def test_a_string_is_one_user_message() -> None:
    assert accept(input="hi") == accept(input=[USER])


def test_roles_and_parts_are_kept() -> None:
    parts = [{"type": "input_text", "text": "A"}, {"type": "input_text", "text": "B"}]
    message = accept(input=[{"type": "message", "role": "user", "content": parts}]).input[0]
    assert isinstance(message, InputMessage)
    assert [part.text for part in message.content if isinstance(part, InputText)] == ["A", "B"]


def test_an_assistant_message_is_told_by_its_role() -> None:
    request = accept(input=[{"role": "assistant", "content": "A"}, CALL, OUTPUT])
    assert isinstance(request.input[0], AssistantMessage)
    assert isinstance(request.input[2], FunctionCallOutput)


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/json"},
        {"content-type": "Application/JSON; charset=utf-8"},
        {"content-type": "application/vnd.api+json", "content-encoding": "identity"},
    ],
)
def test_takes_json(headers: dict[str, str]) -> None:
    assert NODE.accept(headers, b'{"model":"m","input":"hi"}').model == "m"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "text/json"},
        {"content-type": "application/jsonp"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "application/json", "content-encoding": "identity, zstd"},
    ],
)
def test_refuses_other_media_types(headers: dict[str, str]) -> None:
    with pytest.raises(ApiError) as caught:
        NODE.accept(headers, b'{"model":"m","input":"hi"}')
    assert caught.value.status == 415


IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}


@pytest.mark.parametrize(
    ("limits", "status", "param", "words"),
    [
        (RequestLimits(max_request_bytes=99), 413, None, "Request body is 100 bytes; this model accepts at most 99"),
        (RequestLimits(max_items=2), 400, "input", "3 items"),
        (RequestLimits(max_tools=1), 400, "tools", "2 tools"),
        (RequestLimits(max_images=1), 400, "input", "2 images"),
    ],
)
def test_a_model_has_limits(limits: RequestLimits, status: int, param: str | None, words: str) -> None:
    message, output = USER | {"content": [IMAGE]}, OUTPUT | {"output": [IMAGE]}
    request = accept(input=[message, CALL, output], tools=[TOOL, TOOL | {"name": "other"}])
    check_limits(request, 100, RequestLimits())
    with pytest.raises(ApiError) as caught:
        check_limits(request, 100, limits)
    assert (caught.value.status, caught.value.param) == (status, param)
    assert words in caught.value.message


def test_parts_of_an_output_are_joined_whatever_their_type() -> None:
    parts = [{"type": "input_text", "text": "A"}, {"type": "output_text", "text": "B"}]
    turns = to_turns(accept(input=[USER, CALL, OUTPUT | {"output": parts}]), detect_features(ChatTemplate(TOOLS)))
    assert [turn["content"] for turn in turns if turn["role"] == "tool"] == ["A\nB"]


def test_a_tool_without_parameters_is_echoed_as_it_was_sent() -> None:
    request = accept(tools=[TOOL])
    (tool,) = NODE.new_response(request, "resp_1", 1)["tools"]
    assert tool == {"type": "function", "name": "f", "description": None, "parameters": None, "strict": False}
