"""The bureau surface: what it takes for models of Triton, whom it counts requests for, and what it lets one take."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.config.models import BureauSettings, ModelConfig
from sidecar.exchange.commands import CallUpstream, Finish, SendBody
from sidecar.exchange.events import Tick
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.phases.generating import KEEP_ALIVE
from sidecar.responses.errors import CODES, ApiError
from sidecar.surfaces.attribution import Attribution
from sidecar.surfaces.bureau import BUREAU
from sidecar.surfaces.bureau.attribution import attribution
from sidecar.surfaces.bureau.catalog import CatalogNames
from sidecar.surfaces.names import with_defaults
from tests.core import kit
from tests.core.sse import parse
from tests.core.surfaces.bureau_requests import SERVED, accept, asked
from tests.core.surfaces.node_requests import CALL, OUTPUT, TOOL, USER, schema_format

HEAD_AT = 100.0

ACCEPTED: dict[str, dict[str, Any]] = {
    "all that OpenAI fills in": {
        "background": False,
        "frequency_penalty": 0.0,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "parallel_tool_calls": True,
        "presence_penalty": 0,
        "previous_response_id": None,
        "service_tier": "auto",
        "store": False,
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "top_logprobs": 0,
        "truncation": "disabled",
    },
    "a service tier as responses tell it": {"service_tier": "default"},
    "a conversation with calls": {"input": [USER, CALL, OUTPUT], "tools": [TOOL]},
    "a schema": {"text": schema_format()},
    "reasoning": {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]},
    "identifiers": {"user": "u", "safety_identifier": "s", "prompt_cache_key": "p", "metadata": {"a": "b"}},
    "the extension": {"ib": {"tags": ["a"], "session": "s", "pool": ["x"], "suggest": {"mode": "inline"}}},
    "what Codex adds": {"client_metadata": {"a": "b"}, "prompt_cache_retention": "in_memory"},
    "null for what is not taken": {"conversation": None, "prompt": None, "moderation": None, "anything": None},
}


@pytest.mark.parametrize("parameters", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(parameters: dict[str, Any]) -> None:
    assert accept(**parameters).model == "m"


def hosted(kind: str) -> dict[str, Any]:
    return {"tools": [TOOL, {"type": kind}]}


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "conversation": ({"conversation": {"id": "c"}}, "conversation", "conversations are not kept"),
    "background": ({"background": True}, "background", "no background responses"),
    "prompt": ({"prompt": {"id": "p"}}, "prompt", "prompt templates are not kept"),
    "item_reference": ({"input": [{"type": "item_reference", "id": "m"}]}, "input[0]", "not kept here"),
    "truncation": ({"truncation": "auto"}, "truncation", "no input items are ever dropped"),
    "max_tool_calls": ({"max_tool_calls": 3}, "max_tool_calls", "hosted tools"),
    "top_logprobs": ({"top_logprobs": 2}, "top_logprobs", "not supported by this model"),
    "logprobs": ({"include": ["message.output_text.logprobs"]}, "include[0]", "message.output_text.logprobs"),
    "service_tier": ({"service_tier": "flex"}, "service_tier", "service_tier is not supported"),
    "frequency_penalty": ({"frequency_penalty": 0.5}, "frequency_penalty", "not supported by this model"),
    "presence_penalty": ({"presence_penalty": 1}, "presence_penalty", "not supported by this model"),
    "moderation": ({"moderation": {"model": "m"}}, "moderation", "not supported by this model"),
    "cache retention": ({"prompt_cache_retention": "24h"}, "prompt_cache_retention", "not supported"),
    "an unknown parameter": ({"anything": 1}, "anything", "anything is not supported by this model"),
    "a chat parameter": ({"max_tokens": 1}, "max_tokens", "use max_output_tokens"),
    "web_search": (hosted("web_search"), "tools[1]", "no route that is certified for web_search"),
    "shell": (hosted("shell"), "tools[1]", "tool of type 'shell'"),
    **{
        kind: (hosted(kind), "tools[1]", "its cost cannot be reserved")
        for kind in (
            *("web_search_preview", "file_search", "code_interpreter", "computer_use_preview", "image_generation"),
            "mcp",
        )
    },
}


@pytest.mark.parametrize(("parameters", "param", "words"), REFUSED.values(), ids=REFUSED)
def test_refuses_what_would_have_no_effect(parameters: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(ApiError) as refused:
        accept(**parameters)
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", param)
    assert words in refused.value.message


def final(parameters: dict[str, Any], headers: dict[str, str] | None = None) -> dict[str, Any]:
    played = bureau()
    assert isinstance(kit.handle(played, asked(headers, **parameters))[0], CallUpstream)
    commands = kit.upstream(played, kit.text("Hi") + kit.final(), HEAD_AT + 1)
    body: dict[str, Any] = json.loads(kit.sent([*commands, *played.handle(kit.whole_end())]))
    return body


def bureau(**changes: Any) -> Exchange:
    return kit.exchange(SERVED, replace(BUREAU, **changes))


def test_the_response_has_openai_s_members_with_their_defaults() -> None:
    told = final({})
    defaults: dict[str, Any] = {
        "background": False,
        "frequency_penalty": 0,
        "max_output_tokens": 4096,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "presence_penalty": 0,
        "previous_response_id": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1,
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1,
        "truncation": "disabled",
    }
    assert {name: told[name] for name in defaults} == defaults
    assert "b3os" not in told
    sent = {"user": "u", "safety_identifier": "s", "prompt_cache_key": "p", "temperature": 0.5, "metadata": {"a": "b"}}
    assert {name: final(sent)[name] for name in sent} == sent


@pytest.mark.parametrize("name", ["acme/letters", "letters"])
def test_the_response_tells_the_slug(name: str) -> None:
    assert final({"model": name})["model"] == "acme/letters"


def test_an_alias_s_preset_fills_in_what_is_left_out() -> None:
    told = final({"model": "org/fast"})
    assert (told["model"], told["temperature"], told["reasoning"]["effort"]) == ("acme/letters", 0.2, "low")
    assert final({"model": "org/fast", "temperature": 1})["temperature"] == 1
    assert final({"model": "org/fast", "reasoning": {"effort": "none"}})["reasoning"]["effort"] == "none"
    own = final({"model": "org/fast"}, {"x-responses-organization": "org_1"})
    assert (own["max_output_tokens"], own["temperature"]) == (7, 1)


VALUES = st.recursive(st.none() | st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner))
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES)


@given(values=OBJECTS, defaults=OBJECTS)
def test_defaults_change_nothing_that_was_sent(values: dict[str, Any], defaults: dict[str, Any]) -> None:
    def kept(sent: Any, merged: Any) -> bool:
        if isinstance(sent, dict) and isinstance(merged, dict):
            return all(kept(value, merged[name]) for name, value in sent.items())
        return sent is None or sent == merged

    merged = with_defaults(values, defaults)
    assert kept(values, merged)
    assert with_defaults({}, defaults) == defaults
    assert merged.keys() == values.keys() | defaults.keys()


def model(name: str, catalog: dict[str, Any] | None) -> ModelConfig:
    return ModelConfig.model_validate(
        {"name": name, "triton_model": "t", "tokenizer": "/nowhere", "context_length": 10, "catalog": catalog}
    )


NAMES = CatalogNames(
    [
        model("one", {"slug": "acme/chat", "aliases": [{"name": "org/fast"}, {"name": "org/own", "team": "org_1"}]}),
        model("two", {"slug": "globex/chat", "vendor_name": "chat"}),
        model("three", {"slug": "globex/mini", "vendor_name": "acme/chat"}),
        model("four", {"slug": "globex/big", "aliases": [{"name": "org/fast", "team": "org_2"}]}),
        model("node-only", None),
    ]
)


@pytest.mark.parametrize(
    ("name", "team", "found"),
    [
        ("acme/chat", "", "one"),
        ("globex/mini", "", "three"),
        ("mini", "", None),
        ("big", "", "four"),
        ("org/fast", "", "one"),
        ("org/fast", "org_1", "one"),
        ("org/fast", "org_2", "four"),
        ("org/own", "org_1", "one"),
        ("org/own", "org_2", None),
        ("org/own", "", None),
        ("one", "", None),
    ],
)
def test_slugs_come_first_then_aliases_then_vendors_own_names(name: str, team: str, found: str | None) -> None:
    if found is not None:
        assert NAMES.find(name, team).model == found
        return
    with pytest.raises(ApiError) as refused:
        NAMES.find(name, team)
    assert (refused.value.code, refused.value.param) == ("model_not_available", "model")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("chat", "chat is the name of acme/chat and globex/chat; ask for one of them."),
        ("node-only", "node-only has no route that is certified for this endpoint."),
    ],
)
def test_a_name_that_is_known_and_no_use_is_invalid(name: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        NAMES.find(name, "")
    assert (refused.value.code, refused.value.param, refused.value.message) == ("invalid_request", "model", message)


def test_the_list_has_the_slugs_and_their_vendors() -> None:
    assert list(NAMES.listed("org_1")) == ["acme/chat", "globex/chat", "globex/mini", "globex/big"]
    assert NAMES.find("globex/big", "").owner == "globex"


def counted(headers: dict[str, str], **parameters: Any) -> Attribution:
    request: Any = accept(**parameters)
    return attribution(headers, request)


@pytest.mark.parametrize(
    ("headers", "parameters", "end_user"),
    [
        ({"ib-user": "h"}, {"user": "u", "safety_identifier": "s"}, "h"),
        ({}, {"user": "u", "safety_identifier": "s"}, "u"),
        ({}, {"safety_identifier": "s"}, "s"),
        ({"ib-user": ""}, {"user": "u"}, "u"),
        ({}, {}, None),
        ({"ib-user": "Ã¼" * 256}, {}, "ü" * 256),
    ],
)
def test_the_header_s_user_wins_then_user_then_the_identifier(
    headers: dict[str, str], parameters: dict[str, Any], end_user: str | None
) -> None:
    assert counted(headers, **parameters).end_user == end_user


def test_a_header_is_utf_8_as_the_body_is() -> None:
    # As it comes from Envoy: each byte read as a character.
    sent = "Jürgen 你好".encode().decode("latin-1")
    told = counted({"ib-user": sent, "ib-session": sent})
    assert (told.end_user, told.session) == ("Jürgen 你好", "Jürgen 你好")


def test_tags_of_the_header_and_of_the_body_count_together() -> None:
    told = counted({"ib-tags": "a, b:c/d=e-f._ ,,a"}, ib={"tags": ["z", "a"]})
    assert told.tags == ("a", "b:c/d=e-f._", "z")
    assert told.tag_list == "a,b:c/d=e-f._,z"
    assert counted({}).tag_list is None


TEN = [f"t{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("headers", "parameters", "param"),
    [
        ({"ib-user": "u" * 257}, {}, "ib-user"),
        ({"ib-user": "a\x00b"}, {}, "ib-user"),
        ({"ib-user": "\xfc"}, {}, "ib-user"),
        ({"ib-session": "\xfc"}, {}, "ib-session"),
        ({}, {"user": "u" * 257}, "user"),
        ({"ib-user": "u"}, {"safety_identifier": "s" * 257}, "safety_identifier"),
        ({"ib-tags": "a b"}, {}, "ib-tags"),
        ({"ib-tags": "x" * 65}, {}, "ib-tags"),
        ({}, {"ib": {"tags": [""]}}, "ib.tags"),
        ({}, {"ib": {"tags": ["a,b"]}}, "ib.tags"),
        ({"ib-tags": ",".join([*TEN, "more"])}, {}, "ib-tags"),
        ({"ib-tags": "more"}, {"ib": {"tags": TEN}}, "ib.tags"),
        ({"ib-session": "s" * 129}, {}, "ib-session"),
        ({}, {"ib": {"session": "s" * 129}}, "ib.session"),
        ({"x-client-request-id": "é"}, {}, "x-client-request-id"),
        ({"x-client-request-id": "x" * 513}, {}, "x-client-request-id"),
    ],
)
def test_what_is_beyond_its_limit_is_named(headers: dict[str, str], parameters: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        counted(headers, **parameters)
    assert (refused.value.code, refused.value.param) == ("invalid_request", param)


@given(tags=st.lists(st.from_regex(r"[A-Za-z0-9._:/=-]{1,64}", fullmatch=True), max_size=10, unique=True))
def test_any_ten_good_tags_are_taken_in_either_place(tags: list[str]) -> None:
    assert list(counted({"ib-tags": ",".join(tags)}).tags) == tags
    assert list(counted({}, ib={"tags": tags}).tags) == tags


def error_of(commands: list[Any]) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(kit.reply(commands).body)["error"]
    return error


def test_an_error_has_five_members() -> None:
    played = bureau()
    error = error_of(kit.handle(played, asked(store=True)))
    assert list(error) == ["message", "type", "param", "code", "request_id"]
    assert error["request_id"] == "r-1"


def test_a_body_above_a_mebibyte_is_refused_by_both_numbers() -> None:
    served = kit.model(limits={"max_request_bytes": 8 << 20}, catalog={"slug": "acme/letters"})
    played = kit.exchange(served, BUREAU)
    assert played.max_request_bytes == 1 << 20
    event = asked()
    error = error_of(kit.handle(played, replace(event, body_bytes=(1 << 20) + 1)))
    assert error["code"] == "payload_too_large"
    assert error["message"] == "Request body is 1048577 bytes; this endpoint accepts at most 1048576"
    taken = kit.handle(kit.exchange(served, BUREAU), replace(event, body_bytes=1 << 20))
    assert isinstance(taken[0], CallUpstream)


PATIENT = kit.model(
    context_length=10_000, first_token_timeout=1000.0, token_timeout=1000.0, catalog={"slug": "acme/letters"}
)


def called(**body: Any) -> Exchange:
    played = kit.exchange(PATIENT, BUREAU)
    assert isinstance(kit.handle(played, asked(**body))[0], CallUpstream)
    return played


def test_a_stream_may_be_silent_for_thirty_seconds_before_its_first_token() -> None:
    played = called(stream=True)
    assert played.due_at == HEAD_AT + 30
    assert played.handle(Tick(HEAD_AT + 29.9)) == []
    error = error_of(played.handle(Tick(HEAD_AT + 30)))
    assert (error["code"], error["message"]) == ("infer_backend_unavailable", "The model did not answer in time.")


def test_keep_alive_comments_do_not_count_as_the_model_speaking() -> None:
    played = called(stream=True)
    kit.upstream(played, kit.text("Hi"), HEAD_AT + 1)
    for second in range(4, 31, 3):
        assert played.handle(Tick(HEAD_AT + second)) == [SendBody(KEEP_ALIVE)]
    body, end = played.handle(Tick(HEAD_AT + 31))
    assert isinstance(body, SendBody) and isinstance(end, Finish)
    (error,) = parse(body)
    assert (error.type, error.data["code"]) == ("error", "stream_interrupted")


def test_a_response_that_is_no_stream_may_take_the_whole_deadline() -> None:
    played = called()
    assert played.due_at == HEAD_AT + 240
    kit.upstream(played, kit.text("Hi"), HEAD_AT + 1)
    assert played.due_at == HEAD_AT + 240
    assert played.handle(Tick(HEAD_AT + 239.9)) == []
    reply = kit.reply(played.handle(Tick(HEAD_AT + 240)))
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"], error["type"]) == (504, "deadline_exceeded", "server_error")


def test_a_stream_that_takes_longer_is_interrupted() -> None:
    played = called(stream=True)
    for second in range(20, 240, 20):
        assert kit.upstream(played, kit.text("!"), HEAD_AT + second)
    body = kit.sent(played.handle(Tick(HEAD_AT + 240)))
    (error,) = parse(body)
    assert (error.type, error.data["code"]) == ("error", "stream_interrupted")
    assert played.done


@pytest.mark.parametrize("failed_event", [False, True])
def test_a_stream_that_breaks_has_one_code_whatever_broke_it(failed_event: bool) -> None:
    of = bureau(settings=BureauSettings(failed_event=failed_event))
    kit.handle(of, asked(stream=True))
    commands = kit.upstream(of, kit.text("some"), HEAD_AT + 1) + of.handle(kit.broken_end())
    events = parse(kit.sent(commands))
    ends = [event.type for event in events if event.type in ("response.completed", "response.failed", "error")]
    assert ends == ["response.failed"] * failed_event + ["error"]
    last = events[-1].data
    assert (last["code"], last["error"]["code"]) == ("stream_interrupted", "stream_interrupted")
    assert list(last["error"]) == ["message", "type", "param", "code", "request_id"]


def test_every_code_is_one_that_the_surface_knows() -> None:
    assert set(BUREAU.codes) == CODES.keys()
