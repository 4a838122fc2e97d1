"""What the node surface refuses: one code, one path, one sentence for each fault a request can have."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.responses.items import MAX_ITEMS
from sidecar.responses.tools import MAX_TOOLS
from tests.core.surfaces.node_requests import CALL, OUTPUT, TOOL, USER, levels, refusal, schema_format, user_part

INVALID = "invalid_request"
UNSUPPORTED = "unsupported_parameter"

REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "null model": ({"model": None}, INVALID, "model", "Missing"),
    "empty model": ({"model": ""}, INVALID, "model", "at least 1"),
    "model type": ({"model": 3}, INVALID, "model", "expected a string, but got an integer"),
    "null input": ({"input": None}, INVALID, "input", "Missing"),
    "empty input": ({"input": ""}, INVALID, "input", "non-empty"),
    "no items": ({"input": []}, INVALID, "input", "at least one"),
    "input type": ({"input": 3}, INVALID, "input", "expected a string or an array, but got an integer"),
    "too many items": ({"input": [USER] * (MAX_ITEMS + 1)}, INVALID, "input", "at most"),
    "too many tools": ({"tools": [TOOL] * (MAX_TOOLS + 1)}, INVALID, "tools", "at most"),
    "item type": ({"input": [3]}, INVALID, "input[0]", "expected an object"),
    "null item": ({"input": [None]}, INVALID, "input[0]", "got null"),
    "item without role": ({"input": [{}]}, INVALID, "input[0].role", "Missing"),
    "type of a type": ({"input": [{"type": 7}]}, INVALID, "input[0].type", "a string"),
    "role": ({"input": [USER, {"role": "tool", "content": ""}]}, INVALID, "input[1].role", "'tool'"),
    "no content": ({"input": [{"role": "user"}]}, INVALID, "input[0].content", "Missing"),
    "content type": ({"input": [{"role": "user", "content": {}}]}, INVALID, "input[0].content", "a string or an array"),
    "part type": ({"input": [{"role": "user", "content": ["x"]}]}, INVALID, "input[0].content[0]", "an object"),
    "part without type": (user_part(text="x"), INVALID, "input[0].content[0].type", "Missing"),
    "chat text part": (user_part(type="text", text="x"), INVALID, "input[0].content[0].type", "'input_text'"),
    "chat image part": (
        user_part(type="image_url", image_url="data:"),
        INVALID,
        "input[0].content[0].type",
        "'input_image'",
    ),
    "file part": (user_part(type="input_file"), UNSUPPORTED, "input[0].content[0]", "'input_file'"),
    "audio part": (user_part(type="input_audio"), UNSUPPORTED, "input[0].content[0]", "'input_audio'"),
    "assistant's part in a user message": (
        user_part(type="output_text", text=""),
        INVALID,
        "input[0].content[0].type",
        "'output_text'",
    ),
    "image as a file": (
        user_part(type="input_image", file_id="file_1"),
        UNSUPPORTED,
        "input[0].content[0].file_id",
        "image_url",
    ),
    "image URL as an object": (
        user_part(type="input_image", image_url={"url": "data:"}),
        INVALID,
        "input[0].content[0].image_url",
        "a string",
    ),
    "image URL of another scheme": (
        user_part(type="input_image", image_url="file:///etc/passwd"),
        INVALID,
        "input[0].content[0].image_url",
        "https?",
    ),
    "file in an output": (
        {"input": [CALL, OUTPUT | {"output": [{"type": "input_file"}]}]},
        UNSUPPORTED,
        "input[1].output[0]",
        "'input_file'",
    ),
    "refusal in an output": (
        {"input": [CALL, OUTPUT | {"output": [{"type": "refusal", "refusal": "no"}]}]},
        INVALID,
        "input[1].output[0].type",
        "'input_text', 'input_image', 'output_text'",
    ),
    "item reference": (
        {"input": [USER, {"type": "item_reference", "id": "msg_1"}]},
        UNSUPPORTED,
        "input[1]",
        "store: false",
    ),
    "item": ({"input": [{"type": "custom_tool_call"}]}, UNSUPPORTED, "input[0]", "'custom_tool_call'"),
    "call without output": ({"input": [CALL]}, INVALID, "input", "c1"),
    "output without call": ({"input": [OUTPUT]}, INVALID, "input", "c1"),
    "call twice": ({"input": [CALL, CALL, OUTPUT]}, INVALID, "input", "c1"),
    "output twice": ({"input": [CALL, OUTPUT, OUTPUT]}, INVALID, "input", "c1"),
    "arguments": ({"input": [CALL | {"arguments": {}}, OUTPUT]}, INVALID, "input[0].arguments", "a string"),
    "previous": ({"previous_response_id": "resp_1"}, UNSUPPORTED, "previous_response_id", "store: false"),
    "conversation": ({"conversation": "conv_1"}, UNSUPPORTED, "conversation", "input"),
    "conversation object": ({"conversation": {"id": "c"}}, UNSUPPORTED, "conversation", "input"),
    "prompt": ({"prompt": {"id": "p"}}, UNSUPPORTED, "prompt", "input"),
    "stored state is refused before an output without call": (
        {"previous_response_id": "resp_1", "input": [OUTPUT]},
        UNSUPPORTED,
        "previous_response_id",
        "input",
    ),
    "background": ({"background": True}, UNSUPPORTED, "background", ""),
    "truncation": ({"truncation": "auto"}, UNSUPPORTED, "truncation", ""),
    "unknown truncation": ({"truncation": "x"}, INVALID, "truncation", "'disabled'"),
    "top_logprobs": ({"top_logprobs": 2}, UNSUPPORTED, "top_logprobs", ""),
    "max_tool_calls": ({"max_tool_calls": 2}, UNSUPPORTED, "max_tool_calls", ""),
    "logprobs": (
        {"include": ["reasoning.encrypted_content", "message.output_text.logprobs"]},
        UNSUPPORTED,
        "include[1]",
        "logprobs",
    ),
    "unknown include": ({"include": ["x"]}, INVALID, "include[0]", "'x'"),
    "unlisted": (
        {"prompt_logprobs": 1},
        UNSUPPORTED,
        "prompt_logprobs",
        "prompt_logprobs is not supported on this node",
    ),
    "chat parameter": ({"max_tokens": 1}, UNSUPPORTED, "max_tokens", "max_output_tokens"),
    "penalty": ({"frequency_penalty": 0.1}, UNSUPPORTED, "frequency_penalty", ""),
    "penalty, boolean": ({"presence_penalty": False}, UNSUPPORTED, "presence_penalty", ""),
    "context": ({"context_management": [1]}, UNSUPPORTED, "context_management", ""),
    "unlisted, long": ({"n" * 500: 1}, UNSUPPORTED, "n" * 64 + "…", ""),
    "tool type": ({"tools": [{"type": "web_search"}, TOOL]}, UNSUPPORTED, "tools[0]", "'web_search'"),
    "custom tool": ({"tools": [TOOL, {"type": "custom", "name": "g"}]}, UNSUPPORTED, "tools[1]", "'custom'"),
    "tool without name": ({"tools": [{"type": "function"}]}, INVALID, "tools[0].name", "Missing"),
    "chat tool": (
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        INVALID,
        "tools[0].name",
        "beside 'type'",
    ),
    "tool name": ({"tools": [TOOL | {"name": "a b"}]}, INVALID, "tools[0].name", "matches"),
    "tool name twice": ({"tools": [TOOL, TOOL]}, INVALID, "tools[1].name", "earlier tool"),
    "parameters": ({"tools": [TOOL | {"parameters": []}]}, INVALID, "tools[0].parameters", "an object"),
    "deep parameters": ({"tools": [TOOL | {"parameters": levels(33)}]}, INVALID, "tools[0].parameters", "32 levels"),
    "large parameters": (
        {"tools": [TOOL | {"parameters": {"title": "é" * 33_000}}]},
        INVALID,
        "tools[0].parameters",
        "65536",
    ),
    "deferred tool": ({"tools": [TOOL | {"defer_loading": True}]}, UNSUPPORTED, "tools[0].defer_loading", ""),
    "tools type": ({"tools": "f"}, INVALID, "tools", "an array"),
    "required without tools": ({"tool_choice": "required"}, INVALID, "tool_choice", "no tools"),
    "unknown choice": (
        {"tool_choice": {"type": "function", "name": "g"}, "tools": [TOOL]},
        INVALID,
        "tool_choice",
        "not in 'tools'",
    ),
    "choice without name": (
        {"tool_choice": {"type": "function"}, "tools": [TOOL]},
        INVALID,
        "tool_choice.name",
        "Missing",
    ),
    "allowed tools": (
        {"tool_choice": {"type": "allowed_tools"}, "tools": [TOOL]},
        UNSUPPORTED,
        "tool_choice",
        "'allowed_tools'",
    ),
    "choice": ({"tool_choice": "x"}, INVALID, "tool_choice", "'none', 'auto' or 'required'"),
    "deep schema": ({"text": schema_format(levels(33))}, INVALID, "text.format.schema", "32 levels"),
    "format without name": (
        {"text": {"format": {"type": "json_schema", "schema": {}}}},
        INVALID,
        "text.format.name",
        "Missing",
    ),
    "format without schema": (
        {"text": {"format": {"type": "json_schema", "name": "a"}}},
        INVALID,
        "text.format.schema",
        "Missing",
    ),
    "format type": ({"text": {"format": {"type": "grammar"}}}, INVALID, "text.format.type", "'grammar'"),
    "verbosity": ({"text": {"verbosity": "x"}}, INVALID, "text.verbosity", "'low'"),
    "unknown text setting": ({"text": {"colour": "x"}}, UNSUPPORTED, "text.colour", ""),
    "effort": ({"reasoning": {"effort": "max"}}, INVALID, "reasoning.effort", "'max'"),
    "unknown reasoning setting": ({"reasoning": {"colour": "x"}}, UNSUPPORTED, "reasoning.colour", ""),
    "chat stream option": (
        {"stream_options": {"include_usage": True}},
        UNSUPPORTED,
        "stream_options.include_usage",
        "",
    ),
    "metadata pairs": ({"metadata": {str(n): "" for n in range(17)}}, INVALID, "metadata", "16"),
    "metadata key": ({"metadata": {"k" * 65: ""}}, INVALID, "metadata", "64"),
    "metadata value": ({"metadata": {"k": "v" * 513}}, INVALID, "metadata", "512"),
    "metadata type": ({"metadata": {"k": 1}}, INVALID, "metadata.k", "a string"),
    "temperature": ({"temperature": 2.1}, INVALID, "temperature", "at most 2"),
    "boolean temperature": ({"temperature": True}, INVALID, "temperature", "a number, but got a boolean"),
    "temperature as text": ({"temperature": "1"}, INVALID, "temperature", "a number, but got a string"),
    "top_p": ({"top_p": -0.1}, INVALID, "top_p", "at least 0"),
    "no tokens": ({"max_output_tokens": 0}, INVALID, "max_output_tokens", "at least 1"),
    "decimal tokens": ({"max_output_tokens": 1.0}, INVALID, "max_output_tokens", "an integer"),
    "boolean tokens": ({"max_output_tokens": True}, INVALID, "max_output_tokens", "an integer"),
    "tokens as text": ({"max_output_tokens": "9"}, INVALID, "max_output_tokens", "an integer"),
    "stream as text": ({"stream": "true"}, INVALID, "stream", "a boolean"),
    "stream as a number": ({"stream": 1}, INVALID, "stream", "a boolean"),
    "store": ({"store": "yes"}, INVALID, "store", "a boolean, but got a string"),
}
"""Parameters, code, param, and words of the message, by the rule."""


@pytest.mark.parametrize(("parameters", "code", "param", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses(parameters: dict[str, Any], code: str, param: str, words: str) -> None:
    error = refusal(**parameters)
    assert (error.code, error.param) == (code, param)
    assert words in error.message


PATHS: dict[str, tuple[dict[str, Any], str]] = {
    name: (parameters, param)
    for name, (parameters, _, param, _) in REFUSED.items()
    # A list with a limit is named by the message in its own way, calls and outputs by their call_id.
    if name not in ("unlisted, long",) and not name.endswith(("twice", "without output", "without call"))
}


@pytest.mark.parametrize(("parameters", "path"), PATHS.values(), ids=PATHS.keys())
def test_a_message_names_the_whole_path(parameters: dict[str, Any], path: str) -> None:
    assert path in refusal(**parameters).message


def test_a_message_about_a_role_names_all_roles() -> None:
    for role in ("tool", 7):
        message = refusal(input=[{"role": role, "content": ""}]).message
        assert "'user', 'assistant', 'system' or 'developer'" in message


def test_a_sentence_of_each_kind() -> None:
    said = {
        refusal(**parameters).message
        for parameters in (
            {"tools": [TOOL, TOOL]},
            {"input": [{"type": "item_reference", "id": "x"}]},
            {"include": ["message.output_text.logprobs"]},
            {"text": {"colour": 1}},
        )
    }
    assert said == {
        "'tools[1].name' is the name of an earlier tool; each may be there once.",
        "'input[0]' refers to a stored item, and nothing is stored on this node; send items whole in 'input' "
        "(store: false).",
        "message.output_text.logprobs in include[0] is not supported on this node",
        "Unknown parameter: 'text.colour'.",
    }


def test_faults_come_in_openai_s_order() -> None:
    faulty: dict[str, Any] = {"temperature": 9, "tools": 1, "unlisted": 1, "input": 1, "model": 1}
    order = []
    while faulty:
        error = refusal(**faulty)
        order.append(error.param)
        del faulty[str(error.param)]
    assert order == ["model", "input", "unlisted", "tools", "temperature"]


@given(
    st.sampled_from(["role", "type", "content", "image_url", "name", "effort"]),
    st.text(min_size=200, max_size=400) | st.just("data:image/png;base64," + "A" * 500),
)
def test_a_message_never_quotes_the_payload(member: str, secret: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "role": {"input": [{"role": secret, "content": ""}]},
        "type": {"input": [{"type": secret}]},
        "content": {"input": [{"role": "user", "content": [{"type": "input_text", "text": [secret]}]}]},
        "image_url": {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x" + secret}]}]},
        "name": {"tools": [{"type": "function", "name": secret + "!"}]},
        "effort": {"reasoning": {"effort": secret}},
    }
    error = refusal(**bodies[member])
    assert secret not in error.message
    assert len(error.message) < 300
    assert error.message.isprintable()
