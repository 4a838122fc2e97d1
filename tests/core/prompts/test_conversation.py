"""Items to turns: what belongs together stands together, and a template gets only what it can take."""

from dataclasses import replace
from typing import Any

import pytest

from sidecar.prompts.conversation import to_tools, to_turns
from sidecar.prompts.features import TemplateFeatures, detect_features
from sidecar.prompts.template import ChatTemplate, Turn
from sidecar.responses.body_bounds import MAX_VALUES
from sidecar.responses.errors import ApiError
from tests.core.prompts.chat_models import ALTERNATING, CALLS_BY_ID, FIRST_SYSTEM_ONLY, PLAIN, STRICT_CALLS, TOOLS
from tests.core.surfaces.node_requests import TOOL, accept

IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}


def features(source: str) -> TemplateFeatures:
    return detect_features(ChatTemplate(source))


def turns(source: str, *items: Any, **parameters: Any) -> list[Turn]:
    return to_turns(accept(input=list(items), **parameters), features(source))


def message(role: str, *texts: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": part, "text": text} for text in texts]}


def call(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": f"f_{call_id}", "arguments": arguments}


def output(call_id: str, value: Any = None) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": f"out {call_id}" if value is None else value}


def reasoning(*texts: str, **members: Any) -> dict[str, Any]:
    return {"type": "reasoning", "content": [{"type": "reasoning_text", "text": text} for text in texts]} | members


def outline(conversation: list[Turn]) -> list[tuple[Any, ...]]:
    """Each turn as its role and what identifies its content: text, ids of calls."""
    rows: list[tuple[Any, ...]] = []
    for turn in conversation:
        calls = [called["id"] for called in turn.get("tool_calls", [])]
        rows.append((turn["role"], turn["content"], *([calls] if calls else [])))
    return rows


USER = message("user", "hi")
SYSTEM = message("system", "S")


def test_a_user_message_keeps_its_role_and_all_its_parts() -> None:
    assert turns(TOOLS, message("user", "A", "B")) == [{"role": "user", "content": "A\nB"}]


def test_text_and_calls_of_one_assistant_turn_stand_together() -> None:
    assert outline(turns(TOOLS, USER, message("assistant", "ok"), call("c1"), output("c1"))) == [
        ("user", "hi"),
        ("assistant", "ok", ["c1"]),
        ("tool", "out c1"),
    ]


def test_a_message_after_the_call_belongs_to_the_same_turn() -> None:
    assert outline(turns(TOOLS, USER, call("c1"), message("assistant", "ok"), output("c1")))[1] == (
        "assistant",
        "ok",
        ["c1"],
    )


@pytest.mark.parametrize(
    "items",
    [
        [call("c1"), call("c2"), output("c1"), output("c2")],
        [call("c1"), call("c2"), output("c2"), output("c1")],
        [output("c2"), output("c1"), call("c1"), call("c2")],
    ],
    ids=["in order", "outputs swapped", "outputs first"],
)
def test_parallel_calls_share_a_turn_and_outputs_follow_in_the_order_of_the_calls(items: list[Any]) -> None:
    assert outline(turns(TOOLS, USER, *items, message("user", "and?"))) == [
        ("user", "hi"),
        ("assistant", "", ["c1", "c2"]),
        ("tool", "out c1"),
        ("tool", "out c2"),
        ("user", "and?"),
    ]


def test_a_call_after_an_output_is_a_step_of_its_own() -> None:
    assert [row[0] for row in outline(turns(TOOLS, USER, call("c1"), output("c1"), call("c2"), output("c2")))] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]


def test_an_output_that_comes_late_stands_beside_its_call() -> None:
    assert outline(turns(TOOLS, USER, call("c1"), message("user", "wait"), output("c1"))) == [
        ("user", "hi"),
        ("assistant", "", ["c1"]),
        ("tool", "out c1"),
        ("user", "wait"),
    ]


def test_a_tool_turn_names_its_call_and_function() -> None:
    assert turns(TOOLS, USER, call("c1"), output("c1"))[-1] == {
        "role": "tool",
        "content": "out c1",
        "tool_call_id": "c1",
        "name": "f_c1",
    }


def test_an_output_given_as_parts_is_plain_text() -> None:
    parts = [{"type": "input_text", "text": '{"temp":15}'}, {"type": "input_text", "text": "done"}]
    assert turns(TOOLS, USER, call("c1"), output("c1", parts))[-1]["content"] == '{"temp":15}\ndone'


def test_parts_that_an_assistant_wrote_may_be_an_output() -> None:
    parts = [{"type": "output_text", "text": "a", "annotations": []}, {"type": "input_text", "text": "b"}]
    assert turns(TOOLS, USER, call("c1"), output("c1", parts))[-1]["content"] == "a\nb"


def test_images_of_an_output_are_user_content_after_the_tool_turns() -> None:
    parts = [{"type": "input_text", "text": "see"}, IMAGE]
    conversation = turns(TOOLS, USER, call("c1"), call("c2"), output("c1", parts), output("c2", [IMAGE]))
    assert [turn["role"] for turn in conversation] == ["user", "assistant", "tool", "tool", "user"]
    assert [turn["content"] for turn in conversation[2:4]] == ["see", ""]
    assert [part["type"] for part in conversation[4]["content"]] == ["image", "image"]


def test_an_image_keeps_its_place_between_texts() -> None:
    parts = [{"type": "input_text", "text": text} for text in "ab"] + [IMAGE, {"type": "input_text", "text": "c"}]
    content = turns(TOOLS, {"role": "user", "content": parts})[0]["content"]
    assert [part.get("text") or part["image"].url for part in content] == ["a\nb", IMAGE["image_url"], "c"]


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([{"role": "user", "content": [{"type": "input_text", "text": "a"}, IMAGE]}], "input[0].content[1]"),
        ([USER, call("c1"), output("c1", [IMAGE])], "input[2].output[0]"),
    ],
)
def test_a_template_for_text_refuses_images_with_their_path(items: list[Any], param: str) -> None:
    with pytest.raises(ApiError) as refusal:
        turns(PLAIN, *items)
    assert (refusal.value.code, refusal.value.param) == ("invalid_request", param)


def test_a_system_message_takes_no_images() -> None:
    with pytest.raises(ApiError) as refusal:
        turns(TOOLS, {"role": "developer", "content": [IMAGE]}, USER)
    assert refusal.value.param == "input[0].content"


@pytest.mark.parametrize(
    ("arguments", "as_object", "as_text"),
    [
        ('{"a": [1]}', {"a": [1]}, '{"a": [1]}'),
        ("", {}, ""),
        ('{"a": "cut', {"arguments": '{"a": "cut'}, '{"a": "cut'),
        ("[1]", {"arguments": "[1]"}, "[1]"),
        ('{"a":"\\ud800"}', {"arguments": '{"a":"\\ud800"}'}, '{"a":"\\ud800"}'),
        ("[" * 5000, {"arguments": "[" * 5000}, "[" * 5000),
    ],
)
def test_arguments_have_the_form_the_template_takes(arguments: str, as_object: Any, as_text: str) -> None:
    for_text = TOOLS.replace("call.function.arguments | tojson", "'' + call.function.arguments")
    for source, expected in ((TOOLS, as_object), (for_text, as_text)):
        called = turns(source, USER, call("c1", arguments), output("c1"))[1]["tool_calls"][0]
        assert called["function"]["arguments"] == expected


@pytest.mark.parametrize("texts", [("T",), ("T", "U")])
def test_reasoning_of_the_current_exchange_is_replayed(texts: tuple[str, ...]) -> None:
    assert turns(TOOLS, USER, reasoning(*texts), call("c1"), output("c1"))[1]["reasoning_content"] == "\n\n".join(texts)


def test_reasoning_falls_back_to_its_summary() -> None:
    item = reasoning(summary=[{"type": "summary_text", "text": "S"}])
    assert turns(TOOLS, USER, item, call("c1"), output("c1"))[1]["reasoning_content"] == "S"


@pytest.mark.parametrize(
    "item",
    [
        reasoning(summary=[], encrypted_content="x"),
        reasoning(content=None),
        reasoning(status="in_progress"),
        reasoning(""),
    ],
    ids=["encrypted", "null content", "in progress", "empty text"],
)
def test_reasoning_without_text_leaves_no_trace(item: dict[str, Any]) -> None:
    assert turns(TOOLS, USER, item, call("c1"), output("c1")) == turns(TOOLS, USER, call("c1"), output("c1"))
    assert turns(TOOLS, USER, item) == turns(TOOLS, USER)


def test_reasoning_of_earlier_exchanges_is_dropped() -> None:
    conversation = turns(
        TOOLS, USER, reasoning("old"), message("assistant", "a"), USER, reasoning("new"), call("c1"), output("c1")
    )
    assert [turn.get("reasoning_content") for turn in conversation] == [None, None, None, "new", None]


def test_a_template_without_a_reasoning_slot_gets_none() -> None:
    assert turns(PLAIN, USER, reasoning("r"), message("assistant", "a"), call("c1"), output("c1"))[1].keys() == {
        "role",
        "content",
    }


def test_a_refusal_is_the_assistant_s_text() -> None:
    item = {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    assert outline(turns(TOOLS, USER, item))[1] == ("assistant", "no")


@pytest.mark.parametrize("source", [PLAIN, FIRST_SYSTEM_ONLY, TOOLS], ids=["plain", "first only", "tools"])
def test_instructions_and_leading_system_items_are_one_system_turn(source: str) -> None:
    items = [SYSTEM, message("developer", "D"), USER]
    assert outline(turns(source, *items, instructions="I")) == [("system", "I\n\nS\n\nD"), ("user", "hi")]


def test_a_late_system_item_can_be_moved_to_the_start() -> None:
    request = accept(
        input=[message("user", "a"), message("developer", "b"), message("user", "c"), message("system", "d")],
        instructions="first",
    )
    assert to_turns(request, features(FIRST_SYSTEM_ONLY), "leading") == [
        {"role": "system", "content": "first\n\nb\n\nd"},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "c"},
    ]


def test_a_late_system_item_keeps_its_place() -> None:
    assert outline(turns(PLAIN, USER, SYSTEM, instructions="I")) == [("system", "I"), ("user", "hi"), ("system", "S")]


def test_a_late_system_item_becomes_a_marked_user_turn_where_the_template_refuses_it() -> None:
    assert outline(turns(FIRST_SYSTEM_ONLY, USER, SYSTEM, message("user", "go"), instructions="I")) == [
        ("system", "I"),
        ("user", "hi"),
        ("user", "[system]\nS"),
        ("user", "go"),
    ]


def test_a_template_without_system_turns_gets_the_text_before_the_first_user_turn() -> None:
    assert outline(turns(ALTERNATING, USER, message("assistant", "a"), SYSTEM, USER, instructions="I")) == [
        ("user", "I\n\nhi"),
        ("assistant", "a"),
        ("user", "[system]\nS\n\nhi"),
    ]


@pytest.mark.parametrize("source", [FIRST_SYSTEM_ONLY, ALTERNATING], ids=["needs a user", "no system"])
def test_a_conversation_of_system_items_alone_becomes_a_user_turn(source: str) -> None:
    assert outline(turns(source, message("developer", "D"))) == [("user", "D")]


def test_empty_instructions_are_no_system_turn() -> None:
    assert outline(turns(TOOLS, USER, instructions="")) == [("user", "hi")]


GREETING = message("assistant", "Hello!")


def test_a_greeting_gets_a_question_before_it_where_the_template_wants_one() -> None:
    assert outline(turns(ALTERNATING, GREETING, USER)) == [("user", "…"), ("assistant", "Hello!"), ("user", "hi")]
    assert outline(turns(ALTERNATING, GREETING)) == [("user", "…"), ("assistant", "Hello!")]


def test_a_greeting_after_instructions_gets_none_where_they_are_the_user_s() -> None:
    assert outline(turns(ALTERNATING, SYSTEM, GREETING, USER)) == [
        ("user", "S"),
        ("assistant", "Hello!"),
        ("user", "hi"),
    ]


def test_a_question_before_a_greeting_comes_after_the_system_turn() -> None:
    with_system = ALTERNATING.replace("if message.role == 'system'", "if false").replace(
        "for message in messages", "for message in messages if message.role != 'system'", 1
    )
    assert outline(turns(with_system, SYSTEM, GREETING, USER)) == [
        ("system", "S"),
        ("user", "…"),
        ("assistant", "Hello!"),
        ("user", "hi"),
    ]


def test_a_greeting_stays_first_where_the_template_takes_it() -> None:
    assert outline(turns(PLAIN, SYSTEM, GREETING, USER)) == [("system", "S"), ("assistant", "Hello!"), ("user", "hi")]


def test_user_turns_in_a_row_are_merged_where_the_template_wants_them_to_alternate() -> None:
    assert outline(turns(ALTERNATING, USER, message("user", "B"))) == [("user", "hi\n\nB")]
    assert outline(turns(PLAIN, USER, message("user", "B"))) == [("user", "hi"), ("user", "B")]


def test_a_template_for_single_calls_gets_them_one_after_another_with_short_ids() -> None:
    items = [USER, message("assistant", "ok"), call("c1"), call("c2"), output("c2"), output("c1")]
    assert outline(turns(STRICT_CALLS, *items)) == [
        ("user", "hi"),
        ("assistant", "ok", ["000000001"]),
        ("tool", "out c1"),
        ("assistant", "", ["000000002"]),
        ("tool", "out c2"),
    ]


def test_a_template_that_writes_the_ids_of_calls_alone_gets_the_names_in_them() -> None:
    items = [USER, call("c1"), call("c2"), output("c2"), output("c1"), call("c3"), output("c3")]
    conversation = turns(CALLS_BY_ID, *items)
    named = [[one["id"] for one in turn["tool_calls"]] for turn in conversation if "tool_calls" in turn]
    assert named == [["functions.f_c1:0", "functions.f_c2:1"], ["functions.f_c3:2"]]
    results = [turn["tool_call_id"] for turn in conversation if turn["role"] == "tool"]
    assert results == ["functions.f_c1:0", "functions.f_c2:1", "functions.f_c3:2"]


def test_a_template_that_wants_an_answer_after_a_tool_turn_gets_one() -> None:
    assert outline(turns(STRICT_CALLS, USER, call("c1"), output("c1"), USER))[2:] == [
        ("tool", "out c1"),
        ("assistant", "…"),
        ("user", "hi"),
    ]


def test_a_template_without_tools_gets_them_as_text() -> None:
    items = [USER, message("assistant", "ok"), call("c1", '{"a":1}'), call("c2"), output("c1"), output("c2"), USER]
    conversation = turns(PLAIN, *items, tools=[TOOL | {"description": "d"}], instructions="I")
    assert [turn["role"] for turn in conversation] == ["system", "user", "assistant", "user", "user"]
    assert conversation[0]["content"].startswith("I\n\n")
    assert '"name": "f", "description": "d"' in conversation[0]["content"]
    assert conversation[2]["content"] == (
        'ok\n<tool_call>\n{"name": "f_c1", "arguments": {"a": 1}}\n</tool_call>\n'
        '<tool_call>\n{"name": "f_c2", "arguments": {}}\n</tool_call>'
    )
    assert conversation[3]["content"] == (
        "<tool_response>\nout c1\n</tool_response>\n<tool_response>\nout c2\n</tool_response>"
    )


@pytest.mark.parametrize("source", [PLAIN, TOOLS], ids=["as text", "as tools"])
def test_tool_choice_none_leaves_the_tools_out(source: str) -> None:
    request = accept(tools=[TOOL], tool_choice="none")
    assert to_tools(request) == []
    assert to_turns(request, features(source)) == [{"role": "user", "content": "hi"}]


def test_a_tool_without_parameters_takes_none() -> None:
    function = {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}
    assert to_tools(accept(tools=[TOOL])) == [{"type": "function", "function": function}]


def test_arguments_that_are_dear_to_parse_stay_text() -> None:
    deep, many = '{"a":' * 70 + "1" + "}" * 70, '{"a":[' + "[]," * MAX_VALUES + "[]]}"
    for arguments in (deep, many):
        made = turns(TOOLS, message("user", "x"), call("1", arguments), output("1"))
        assert made[1]["tool_calls"][0]["function"]["arguments"] == {"arguments": arguments}


def test_the_arguments_of_all_calls_together_are_bounded() -> None:
    arguments = '{"a":[' + "1," * (MAX_VALUES // 4) + "1]}"
    items = [item for at in map(str, range(4)) for item in (call(at, arguments), output(at))]
    assert turns(TOOLS, *items[:-2])
    with pytest.raises(ApiError, match="200000 values"):
        turns(TOOLS, *items)


@pytest.mark.parametrize(
    ("contents", "joined"),
    [
        (["a", "b", "c"], "a\n\nb\n\nc"),
        (["ab", "c", "ib", "d"], ["a\nb\n\nc", "\n\n", "<i>", "b", "\n\n", "d"]),
        (["i", "i"], ["<i>", "\n\n", "<i>"]),
        (["abia", "i", "b"], ["a\nb", "<i>", "a", "\n\n", "<i>", "\n\n", "b"]),
    ],
)
def test_user_turns_in_a_row_are_joined_in_their_order(contents: list[str], joined: str | list[str]) -> None:
    """Each letter is a part: ``i`` an image, others a text."""
    items = [
        {
            "role": "user",
            "content": [IMAGE if part == "i" else {"type": "input_text", "text": part} for part in content],
        }
        for content in contents
    ]
    (turn,) = to_turns(accept(input=items), replace(features(TOOLS), consecutive_users=False))
    content = turn["content"]
    assert (content if isinstance(content, str) else [part.get("text", "<i>") for part in content]) == joined
