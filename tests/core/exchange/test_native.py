"""Exchanges with native upstreams: what is called, what passes through, and what becomes of an answer that fails."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sidecar.exchange.commands import CallUpstream, Finish, SendBody, SendHead
from sidecar.exchange.earlier import Earlier
from sidecar.exchange.events import Abort, Answered, ClientGone, Tick
from sidecar.exchange.load import Load, PrepareContinued
from sidecar.exchange.phases import Calling, Ended
from sidecar.exchange.plan import Prepare
from sidecar.exchange.report import Attempt
from sidecar.exchange.store import Announce, Keep
from sidecar.responses.errors import ApiError
from sidecar.responses.marks import Counts
from sidecar.responses.sealing import KEY_BYTES, Sealer
from sidecar.stored.items import to_lines
from sidecar.surfaces.bureau import BUREAU
from tests.core import kit
from tests.core.backends.native.streams import (
    MESSAGE,
    USAGE,
    delta,
    ending,
    event,
    opening,
    response,
    stream,
)
from tests.core.exchange import native_kit as native
from tests.core.exchange.native_kit import EVENTS, JSON, NODE
from tests.core.sse import parse

OVERLOADED = json.dumps({"error": {"message": "org-1 at host0", "code": "server_is_overloaded"}}).encode()
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}
WEB = {"type": "web_search"}
IMAGE = {"type": "input_image", "image_url": "https://x/y.png"}


def test_the_first_route_is_called() -> None:
    call = native.call(native.exchange(), stream=True, user="u", ib={"tags": ["a"]}, reasoning={"effort": "max"})
    assert (call.host, call.path, call.content_type) == ("native.up0", "/base/v1/responses", "application/json")
    assert call.headers == {
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "authorization": native.KEY,
        "x-request-id": "r-1",
    }
    assert json.loads(call.body) == {
        "model": "gpt-at-0",
        "store": False,
        "input": "hi",
        "stream": True,
        "reasoning": {"effort": "max"},
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 4096,
    }
    assert "sk-secret" not in repr(call)


def test_a_stream_passes_through() -> None:
    of = native.exchange()
    native.call(of, stream=True, metadata={"a": "b"})
    assert native.head(of, EVENTS) == []
    assert kit.upstream(of, opening()) == []
    assert of.phase is Calling
    first, body = kit.upstream(of, delta(2, "Hi"))
    assert isinstance(first, SendHead)
    assert isinstance(body, SendBody)
    assert of.upstream(delta(3, " there"), 101.0) == delta(3, " there")
    last, finish = kit.upstream(of, ending(4))
    assert isinstance(finish, Finish)
    created, *_, completed = parse(body + delta(3, " there") + kit.sent([last]))
    ours = {"model": "openai/gpt", "store": False, "metadata": {"a": "b"}, "user": None, "previous_response_id": None}
    for told in (created, completed):
        assert ours.items() <= told.data["response"].items()
        assert told.data["response"]["id"].startswith("resp_0")
    assert completed.data["response"]["usage"]["total_tokens"] == 18
    report = of.report
    assert (report.outcome, report.model, report.counted) == ("completed", "gpt", False)
    assert (report.usage.input_tokens, report.usage.output_tokens) == (11, 7)
    assert Counts.of(report.delivered.written) == (True, 7, 2)
    assert report.attempts == [Attempt("up0", None, 200, 500)]


def test_an_answer_that_is_no_stream_passes_through() -> None:
    of = native.exchange()
    call = native.call(of, max_output_tokens=9)
    assert (call.headers["accept"], json.loads(call.body)["max_output_tokens"]) == ("application/json", 9)
    body = json.dumps(response("incomplete", output=[MESSAGE], usage=USAGE, new=1)).encode()
    commands = native.answers(of, JSON, body)
    assert kit.shape(commands) == kit.WHOLE_ANSWER
    told = json.loads(kit.sent(commands))
    assert (told["status"], told["output"], told["new"]) == ("incomplete", [MESSAGE], 1)
    assert (told["model"], told["store"], told["max_output_tokens"]) == ("openai/gpt", False, 9)
    assert of.report.outcome == "incomplete"
    assert of.report.usage.output_tokens == 7


def test_on_the_node_it_is_told_as_the_node_s_own() -> None:
    of = native.exchange(surface=NODE)
    (call,) = native.begin(of, native.request(NODE, temperature=0.5))
    assert isinstance(call, CallUpstream)
    assert "max_output_tokens" not in json.loads(call.body)
    body = json.dumps(response("completed", output=[MESSAGE], usage=USAGE, new=1)).encode()
    told = json.loads(kit.sent(native.answers(of, JSON, body)))
    assert told["b3os"]["route"] == "gateway"
    assert (told["temperature"], told["top_p"], told["model"]) == (0.5, None, "gpt")
    local = native.exchange(surface=NODE)
    kit.handle(local, kit.request())
    own = json.loads(kit.sent([*kit.upstream(local, kit.text("Hi") + kit.final()), *local.handle(kit.whole_end())]))
    assert told.keys() == own.keys()


def test_what_stops_a_local_model_s_request_on_the_node_stops_this_one() -> None:
    error = native.refused(NODE, tools=[{"type": "custom", "name": "x"}])
    assert (error["code"], error["param"]) == ("unsupported_parameter", "tools[0]")


ELSEWHERE: dict[str, tuple[int, dict[str, str], str]] = {
    "overloaded": (503, {"retry-after": "1"}, "capacity_unavailable"),
    "nobody there": (503, {"x-local-reply": "503"}, "infer_backend_unavailable"),
    "limited for a moment": (429, {"retry-after": "1"}, "capacity_unavailable"),
}


@pytest.mark.parametrize(("status", "headers", "outcome"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_the_next_route_is_tried(status: int, headers: dict[str, str], outcome: str) -> None:
    of = native.exchange()
    native.call(of, stream=True)
    (second,) = native.answers(of, {**JSON, **headers}, OVERLOADED, status)
    assert isinstance(second, CallUpstream)
    assert (second.host, json.loads(second.body)["model"]) == ("native.up1", "gpt-at-1")
    native.head(of, EVENTS, at=102.25)
    commands = kit.upstream(of, stream("Hi"), at=102.5)
    assert isinstance(commands[0], SendHead)
    assert of.report.outcome == "completed"
    assert of.report.attempts == [Attempt("up0", outcome, status, 500), Attempt("up1", None, 200, 250)]


def test_the_last_route_s_failure_is_told_in_our_words() -> None:
    of = native.exchange()
    native.call(of)
    native.answers(of, JSON, OVERLOADED, 503)
    reply = kit.reply(native.answers(of, {**JSON, "retry-after": "3"}, OVERLOADED, 429))
    assert reply.status == 503
    assert reply.headers["retry-after"] == "3"
    error = json.loads(reply.body)["error"]
    assert (error["code"], "host0" in error["message"]) == ("capacity_unavailable", False)
    assert [attempt.outcome for attempt in of.report.attempts] == ["capacity_unavailable", "capacity_unavailable"]


def test_where_the_connection_has_ended_no_other_route_is_tried() -> None:
    of = native.exchange()
    native.call(of)
    reply = kit.reply(of.handle(native.end(None, whole=False)))
    assert reply.status == 503
    assert of.report.attempts == [Attempt("up0", "infer_backend_unavailable")]


def test_a_refusal_names_the_parameter_as_the_client_knows_it() -> None:
    told = {"error": {"message": "m", "type": "invalid_request_error", "param": "input[0].content"}}
    of = native.exchange()
    native.call(of)
    error = json.loads(kit.reply(native.answers(of, JSON, json.dumps(told).encode(), 400)).body)["error"]
    assert (error["code"], error["param"]) == ("invalid_request", "input[0].content")
    told["error"]["param"] = "sk_live_1"
    of = native.exchange()
    native.call(of)
    error = json.loads(kit.reply(native.answers(of, JSON, json.dumps(told).encode(), 400)).body)["error"]
    assert error["param"] is None


def test_what_an_upstream_cannot_read_is_left_out_and_paths_are_the_client_s_all_the_same() -> None:
    sealer = Sealer(bytes(KEY_BYTES))
    ours = {"type": "reasoning", "id": "x", "summary": [], "encrypted_content": sealer.seal("hm", "x")}
    unsealed = {"type": "reasoning", "id": "rs_01jabcdefghjkmnpqrstvwxyz0_0", "summary": []}
    theirs = {"type": "reasoning", "id": "rs_up", "summary": [], "encrypted_content": "gAAAA"}
    turn = {"type": "message", "role": "user", "content": "hi"}
    for named, param in (("input[0]", "input[2]"), ("input[1].content", "input[3].content"), ("input[9]", None)):
        of = native.exchange(surface=replace(BUREAU, sealer=sealer))
        assert json.loads(native.call(of, input=[ours, unsealed, theirs, turn]).body)["input"] == [theirs, turn]
        told = {"error": {"type": "invalid_request_error", "param": named}}
        error = json.loads(kit.reply(native.answers(of, JSON, json.dumps(told).encode(), 400)).body)["error"]
        assert error["param"] == param


NO_ANSWERS: dict[str, tuple[dict[str, str], bytes]] = {
    "a page": ({"content-type": "text/html"}, b"<html>"),
    "JSON for a stream": (JSON, b"{}"),
    "gzip": ({**EVENTS, "content-encoding": "gzip"}, b"\x1f\x8b"),
    "nothing": (EVENTS, b""),
    "an opening and no more": (EVENTS, opening()),
    "an error": (EVENTS, opening() + event("error", 2, error={"code": "server_error"})),
}


@pytest.mark.parametrize(("headers", "body"), NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_a_stream_that_never_begins_is_a_plain_error(headers: dict[str, str], body: bytes) -> None:
    of = native.exchange()
    native.call(of, stream=True)
    commands = native.answers(of, headers, body)
    assert kit.reply(commands).status == 503
    assert of.report.backend_error is not None
    assert of.report.backend_error.failure.startswith("upstream_")


@pytest.mark.parametrize(
    "end", [b"", event("error", 4, error={"message": "at host0", "code": "x"})], ids=["cut", "error"]
)
def test_a_stream_that_breaks_ends_with_one_error(end: bytes) -> None:
    of = native.exchange()
    native.call(of, stream=True)
    native.head(of, EVENTS)
    commands = kit.upstream(of, opening() + delta(2, "x" * 40) + delta(3, "y"))
    commands += kit.upstream(of, end)
    commands += of.handle(native.end(whole=False))
    *_, last = parse(kit.sent(commands))
    assert (last.type, last.data["code"], last.data["sequence_number"]) == ("error", "stream_interrupted", 4)
    assert b"host0" not in kit.sent(commands)
    assert Counts.of(of.report.delivered.written) == (True, 11, 0)
    assert (of.report.usage.output_tokens, of.report.counted) == (11, True)


def test_on_the_node_the_response_fails_first() -> None:
    of = native.exchange(surface=NODE)
    native.begin(of, native.request(NODE, stream=True))
    native.head(of, EVENTS)
    commands = kit.upstream(of, opening() + delta(2, "x")) + of.handle(native.end(whole=False))
    *_, failed, error = parse(kit.sent(commands))
    assert [failed.type, error.type] == ["response.failed", "error"]
    assert [failed.data["sequence_number"], error.data["sequence_number"]] == [3, 4]
    assert failed.data["response"]["usage"]["output_tokens"] == 1


def test_comments_are_not_the_model_speaking() -> None:
    of = native.exchange()
    native.call(of, stream=True)
    native.head(of, EVENTS)
    kit.upstream(of, opening() + b": ping\n\n", at=109.0)
    assert kit.reply(of.handle(Tick(110.0))).status == 503
    of = native.exchange()
    native.call(of, stream=True)
    native.head(of, EVENTS)
    kit.upstream(of, opening() + delta(2, "x"), at=109.0)
    kit.upstream(of, b": ping\n\n", at=113.0)
    of.handle(Tick(114.0))
    assert of.phase is Ended
    assert of.report.backend_error is not None
    assert of.report.backend_error.failure == "upstream_timeout"


def test_an_answer_that_is_no_stream_may_take_the_whole_deadline() -> None:
    of = native.exchange()
    native.call(of)
    assert of.due_at == 100.0 + 240.0
    assert kit.reply(of.handle(Tick(340.0))).status == 504


def test_a_request_that_may_search_has_ten_minutes() -> None:
    of = native.exchange()
    native.call(of, tools=[WEB], max_tool_calls=3)
    assert of.handle(Tick(340.0)) == []
    assert of.due_at == 100.0 + 600.0


@pytest.mark.parametrize("event", [ClientGone(), Abort(ApiError("node_unavailable", "stopping"))])
def test_an_exchange_that_ends_early_tells_its_attempt(event: Any) -> None:
    of = native.exchange()
    native.call(of, stream=True)
    of.handle(event)
    assert of.report.attempts == [Attempt("up0")]


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a hosted tool": ({"tools": [TOOL, {"type": "file_search"}]}, "unsupported_parameter", "tools[1]"),
    "an unknown tool": ({"tools": [{"type": "new"}]}, "unsupported_parameter", "tools[0]"),
    "a tool without a type": ({"tools": [{}]}, "invalid_request", "tools[0].type"),
    "a hosted tool in a namespace": (
        {"tools": [{"type": "namespace", "tools": [{"type": "mcp"}]}]},
        "unsupported_parameter",
        "tools[0].tools[0]",
    ),
    "a hosted tool in an item": (
        {"input": [{"type": "additional_tools", "tools": [{"type": "mcp"}]}]},
        "unsupported_parameter",
        "input[0].tools[0]",
    ),
    "a reference": ({"input": [{"type": "item_reference", "id": "x"}]}, "unsupported_parameter", "input[0]"),
    "a file of the account": (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
        "unsupported_parameter",
        "input[0].content[0].file_id",
    ),
    "no item": ({"input": [{}]}, "invalid_request", "input[0].type"),
    "no object": ({"input": [7]}, "invalid_request", "input[0]"),
    "no input": ({"input": []}, "invalid_request", "input"),
    "a conversation": ({"conversation": "c"}, "unsupported_parameter", "conversation"),
    "a prompt": ({"prompt": {"id": "p"}}, "unsupported_parameter", "prompt"),
    "background": ({"background": True}, "unsupported_parameter", "background"),
    "what nobody knows": ({"n": 2}, "unsupported_parameter", "n"),
    "a search without a bound": ({"tools": [WEB]}, "invalid_request", "max_tool_calls"),
    "too many metadata": ({"metadata": {str(at): "" for at in range(17)}}, "invalid_request", "metadata"),
    "nothing to generate": ({"max_output_tokens": 0}, "invalid_request", "max_output_tokens"),
}


@pytest.mark.parametrize(("body", "code", "param"), REFUSED.values(), ids=REFUSED)
def test_refuses_what_may_not_pass(body: dict[str, Any], code: str, param: str) -> None:
    error = native.refused(**body)
    assert (error["code"], error["param"]) == (code, param)


PASSES: dict[str, dict[str, Any]] = {
    "client-run tools": {
        "tools": [
            TOOL,
            {"type": "custom", "name": "x", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
            {"type": "local_shell"},
            {"type": "apply_patch"},
        ]
    },
    "items of the future": {"input": [{"type": "new_item", "x": {"y": [1]}}]},
    "values of the future": {"reasoning": {"effort": "ultra", "new": True}, "service_tier": "flex", "include": ["new"]},
    "a choice of the future": {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
    "a file": {
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_file", "file_data": "data:x"}]}]
    },
}


@pytest.mark.parametrize("body", PASSES.values(), ids=PASSES)
def test_what_openai_knows_passes_as_it_was_sent(body: dict[str, Any]) -> None:
    sent = json.loads(native.call(native.exchange(), **body).body)
    body = {**body, "include": [*body.get("include", []), "reasoning.encrypted_content"]}
    assert body.items() <= sent.items()


NEEDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "tools": ({"tools": [TOOL]}, "tools", "tools[0]"),
    "a search": ({"tools": [WEB], "max_tool_calls": 1}, "web_search", "tools[0]"),
    "images": ({"input": [{"role": "user", "content": [IMAGE]}]}, "images", "input[0].content[0]"),
    "a format": ({"text": {"format": {"type": "json_object"}}}, "text.format", "text.format"),
    "compaction": ({"input": [{"type": "compaction_trigger"}]}, "compaction", "input[0]"),
}


@pytest.mark.parametrize(("body", "feature", "param"), NEEDS.values(), ids=NEEDS)
def test_a_request_goes_only_where_what_it_asks_for_is_certified(
    body: dict[str, Any], feature: str, param: str
) -> None:
    assert native.call(native.exchange(native.model((), [feature])), **body).host == "native.up1"
    error = native.refused(served=native.model(native.ALL - {feature}), **body)
    assert (error["code"], error["param"]) == ("unsupported_parameter", param)
    assert feature in error["message"]


STORING = replace(BUREAU, stores=True)
HEADERS = {"x-responses-organization": "o", "x-responses-project": "p", "x-responses-environment": "e"}
EARLIER: list[dict[str, Any]] = [
    {"type": "message", "id": "msg_01jabcdefghjkmnpqrstvwxyz0_i0", "role": "user", "content": "before"},
    {"type": "reasoning", "id": "rs_up", "summary": [], "encrypted_content": "gAAAA"},
    {**MESSAGE, "content": [{"type": "output_text", "text": "yes"}]},
]


def test_a_stored_conversation_goes_upstream_whole_and_its_answer_is_stored() -> None:
    of = native.exchange(surface=STORING, asks=(Prepare, Load, PrepareContinued, Announce, Keep))
    asked = native.request(headers=HEADERS, stream=True, previous_response_id="resp_1", instructions="Be brief.")
    (load,) = native.begin(of, asked)
    assert isinstance(load, Load)
    (again,) = of.handle(Answered(load, Earlier([to_lines(EARLIER)]), 100.0))
    assert isinstance(again, PrepareContinued)
    (announce,) = of.handle(Answered(again, again.prepare.plan(), 100.0))
    (call,) = of.handle(Answered(announce, None, 100.0))  # type: ignore[arg-type]
    assert isinstance(call, CallUpstream)
    sent = json.loads(call.body)
    assert "previous_response_id" not in sent
    assert sent["input"] == [
        {"type": "message", "role": "user", "content": "before"},
        *EARLIER[1:],
        {"type": "message", "role": "user", "content": "hi"},
    ]
    *_, keep = native.answers(of, EVENTS, stream("Hi"))
    assert isinstance(keep, Keep)
    assert keep.record is not None
    assert keep.record.place.previous_id == "resp_1"
    assert json.loads(keep.record.output) == MESSAGE
    assert json.loads(keep.record.response)["previous_response_id"] == "resp_1"


COMPACTED = {
    "id": "resp_up",
    "object": "response.compaction",
    "created_at": 1,
    "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}],
    "usage": {**USAGE, "output_tokens": 40_000},
}
COMPACT = {":path": "/v1/responses/compact"}


def test_a_compaction_is_the_upstream_s_and_costs_no_more_than_was_reserved() -> None:
    of = native.exchange(native.model((), native.ALL))
    (call,) = native.begin(of, native.request(headers=COMPACT, instructions="Keep names."))
    assert isinstance(call, CallUpstream)
    assert (call.host, call.path) == ("native.up1", "/base/v1/responses/compact")
    assert json.loads(call.body) == {
        "model": "gpt-at-1",
        "instructions": "Keep names.",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
    }
    assert json.loads(kit.sent(native.answers(of, JSON, json.dumps(COMPACTED).encode()))) == COMPACTED
    assert of.report.outcome == "completed"
    assert (of.report.usage.input_tokens, of.report.usage.output_tokens) == (11, 32_768)


def test_a_compaction_that_is_none_is_a_failure() -> None:
    of = native.exchange()
    native.begin(of, native.request(headers=COMPACT))
    body = json.dumps(response("completed", output=[])).encode()
    assert kit.reply(native.answers(of, JSON, body)).status == 503


def test_without_a_route_that_is_certified_nothing_is_compacted() -> None:
    of = native.exchange(native.model(native.ALL - {"compaction"}))
    reply = kit.reply(native.begin(of, native.request(headers=COMPACT)))
    error = json.loads(reply.body)["error"]
    assert (error["code"], error["param"]) == ("invalid_request", "model")
