"""Exchanges about stored responses: what they ask for, in which order, and what their clients are told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sidecar.exchange.asks import Ask
from sidecar.exchange.commands import CallUpstream, Command, SendBody
from sidecar.exchange.earlier import Earlier, own_param
from sidecar.exchange.events import Abort, Answered, ClientGone, RequestComplete, Tick
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.load import Load, PrepareContinued
from sidecar.exchange.look_up import LookUp
from sidecar.exchange.phases import Ended, LookingUp, Storing
from sidecar.exchange.plan import Prepare
from sidecar.exchange.store import Announce, Keep, Store
from sidecar.responses.errors import ApiError
from sidecar.responses.page import Page
from sidecar.responses.reply import Reply
from sidecar.stored.items import to_lines
from sidecar.stored.owner import Owner
from sidecar.surfaces.bureau import BUREAU
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.node import NODE
from tests.core import kit
from tests.core.sse import parse
from tests.core.surfaces.bureau_requests import SERVED, asked

STORING = replace(BUREAU, stores=True)
ASKS = (Prepare, Load, PrepareContinued, Announce, Store, LookUp, Keep)
HEADERS = {
    "x-responses-organization": "org_a",
    "x-responses-project": "support",
    "x-responses-environment": "production",
}
OWNER = Owner("org_a", "support", "production")
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
USER = {"type": "message", "id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": "before"}]}
EARLIER = Earlier([to_lines([USER]), to_lines([CALL])])
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "42"}


def begin(of: Exchange, event: RequestComplete) -> Command:
    """The first thing that is to be done about a request."""
    (command,) = of.handle(event)
    return command


def answer(of: Exchange, ask: Command, result: object) -> list[Command]:
    assert isinstance(ask, Ask)
    return of.handle(Answered(ask, result, 100.5))


def exchange(surface: Any = STORING) -> Exchange:
    return Exchange(surface, kit.catalog(SERVED), ASKS, entropy=bytes(range(18)))


def prepared(of: Exchange, **body: Any) -> list[Command]:
    """What is asked for once a request has been looked at."""
    ask = begin(of, asked(HEADERS, **body))
    assert isinstance(ask, Prepare)
    return answer(of, ask, outcome(ask))


def outcome(ask: Prepare) -> object:
    try:
        return ask.plan()
    except ApiError as error:
        return error


def continued(of: Exchange, earlier: Earlier = EARLIER, **body: Any) -> list[Command]:
    """The same for one that continues a conversation, once that has been loaded."""
    (load,) = prepared(of, previous_response_id="resp_1", **body)
    assert load == Load(OWNER, "resp_1")
    (again,) = answer(of, load, earlier)
    assert isinstance(again, PrepareContinued)
    return answer(of, again, outcome(again.prepare))


def called(of: Exchange, commands: list[Command]) -> None:
    """The response may be stored, and the upstream is called."""
    (announce,) = commands
    assert isinstance(announce, Announce)
    (call,) = answer(of, announce, None)
    assert isinstance(call, CallUpstream)


def to_its_end(of: Exchange) -> list[Command]:
    commands = list[Command]()
    for piece in (kit.text("Hi"), kit.final()):
        told = of.upstream(piece, 101.0)
        commands += [SendBody(told)] if isinstance(told, bytes) and told else told or []
    return commands + of.handle(kit.whole_end())


def error_of(commands: list[Command]) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(kit.reply(commands).body)["error"]
    return error


def test_a_surface_without_stored_responses_stores_none() -> None:
    of = Exchange(NODE, kit.catalog(kit.model()), ASKS, entropy=bytes(range(18)))
    ask = begin(of, kit.request(store=True))
    assert isinstance(ask, Prepare)
    (call,) = answer(of, ask, outcome(ask))
    assert isinstance(call, CallUpstream)
    assert {type(command) for command in to_its_end(of)}.isdisjoint({Store, Keep})
    assert of.phase is Ended


def test_a_whole_response_is_stored_before_its_client_is_told() -> None:
    of = exchange()
    called(of, prepared(of, store=True))
    (store,) = to_its_end(of)
    assert isinstance(store, Store)
    assert of.phase is Storing
    record = store.record
    assert (record.place.owner, record.place.previous_id, record.announced) == (OWNER, None, False)
    assert json.loads(record.input)["content"] == [{"type": "input_text", "text": "hi"}]
    assert json.loads(record.output)["content"][0]["text"] == "Hi"
    kept = json.loads(record.response)
    assert (kept["id"], kept["store"], "output" in kept) == (record.place.response_id, True, False)
    assert of.upstream(kit.text("late"), 101.5) == []
    response = json.loads(kit.sent(answer(of, store, True)))
    assert response["store"] is True
    assert {**response, "output": None} == {**kept, "output": None}


@pytest.mark.parametrize("result", [False, ApiError("node_unavailable", "down")])
def test_one_that_cannot_be_stored_is_answered_and_says_so(result: object) -> None:
    of = exchange()
    called(of, prepared(of, store=True))
    (store,) = to_its_end(of)
    assert json.loads(kit.sent(answer(of, store, result)))["store"] is False
    assert of.phase is Ended


def test_nobody_waits_longer_for_the_store_than_that() -> None:
    of = exchange()
    called(of, prepared(of, store=True))
    to_its_end(of)
    assert of.handle(Tick(of.due_at - 0.1)) == []
    assert json.loads(kit.sent(of.handle(Tick(of.due_at))))["store"] is False


@pytest.mark.parametrize("event", [ClientGone(), Abort(ApiError("node_unavailable", "stopping"))])
def test_while_it_is_stored_the_exchange_can_end(event: ClientGone | Abort) -> None:
    of = exchange()
    called(of, prepared(of, store=True))
    to_its_end(of)
    of.handle(event)
    assert of.phase is Ended


def test_a_stream_says_that_it_is_not_stored_and_is_stored_at_last() -> None:
    of = exchange()
    called(of, prepared(of, store=True, stream=True))
    commands = to_its_end(of)
    keep = commands[-1]
    assert isinstance(keep, Keep)
    assert keep.record is not None and keep.record.announced
    assert json.loads(keep.record.response)["store"] is True
    events = parse(kit.sent(commands))
    told = [event.data["response"]["store"] for event in events if "response" in event.data]
    assert told == [False, False, False]


@pytest.mark.parametrize("end", [kit.broken_end(), ClientGone()])
def test_a_stream_that_does_not_come_to_its_end_is_withdrawn(end: Any) -> None:
    of = exchange()
    called(of, prepared(of, store=True, stream=True))
    of.upstream(kit.text("some"), 101.0)
    keep = of.handle(end)[-1]
    assert isinstance(keep, Keep)
    assert keep.record is None


def test_a_turn_begins_with_the_conversation() -> None:
    of = exchange()
    called(of, continued(of, input=[OUTPUT]))
    (store,) = to_its_end(of)
    assert isinstance(store, Store)
    assert store.record.place.previous_id == "resp_1"
    # Its own items alone.
    assert [item["type"] for item in map(json.loads, store.record.input.split(b"\n"))] == ["function_call_output"]
    response = json.loads(kit.sent(answer(of, store, True)))
    assert (response["previous_response_id"], response["store"]) == ("resp_1", True)


def test_a_turn_is_not_stored_where_it_says_so() -> None:
    of = exchange()
    (call,) = continued(of, input=[OUTPUT], store=False)
    assert isinstance(call, CallUpstream)
    assert json.loads(kit.sent(to_its_end(of)))["store"] is False


def test_without_the_conversation_what_depends_on_it_is_not_judged() -> None:
    """A call's output without the call is no fault until it is known that the call is not there."""
    assert error_of(continued(exchange(), Earlier([to_lines([USER])]), input=[OUTPUT]))["param"] == "input"
    refused = error_of(prepared(exchange(), previous_response_id="resp_1", input=[{"type": "unknown"}]))
    assert refused["param"] == "input[0]"


def test_an_answer_that_is_missing_in_the_conversation_is_asked_for() -> None:
    refused = error_of(continued(exchange(), input="go on"))
    assert "No tool output found for function call call_1" in refused["message"]


@pytest.mark.parametrize(
    ("code", "status"), [("not_found", 404), ("policy_denied", 403), ("response_in_progress", 409)]
)
def test_what_cannot_be_continued_is_refused(code: str, status: int) -> None:
    of = exchange()
    (load,) = prepared(of, previous_response_id="resp_1")
    reply = kit.reply(answer(of, load, ApiError(code, "no", "previous_response_id")))
    assert (reply.status, "retry-after" in reply.headers) == (status, status == 409)


@pytest.mark.parametrize("param", ["store", "previous_response_id"])
def test_where_nothing_is_stored_both_are_refused(param: str) -> None:
    body: dict[str, Any] = {"store": True} if param == "store" else {"previous_response_id": "resp_1"}
    error = error_of(prepared(exchange(BUREAU), **body))
    assert (error["code"], error["param"]) == ("unsupported_parameter", param)
    assert "no responses are stored here" in error["message"]


def about(method: str, path: str) -> RequestComplete:
    event = asked(HEADERS)
    return replace(event, headers={**event.headers, ":method": method, ":path": path})


@pytest.mark.parametrize(
    ("method", "path", "operation", "page"),
    [
        ("GET", "/v1/responses/resp_1", Operation.RETRIEVE_RESPONSE, Page()),
        ("GET", "/v1/responses/resp_1?include=x", Operation.RETRIEVE_RESPONSE, Page()),
        ("DELETE", "/v1/responses/resp_1", Operation.DELETE_RESPONSE, Page()),
        ("GET", "/v1/responses/resp_1/input_items?limit=3&after=a", Operation.LIST_INPUT_ITEMS, Page(3, "desc", "a")),
    ],
)
def test_a_request_about_one_is_looked_up(method: str, path: str, operation: Operation, page: Page) -> None:
    of = exchange()
    ask = begin(of, about(method, path))
    assert ask == LookUp(operation, "resp_1", OWNER, page)
    assert of.phase is LookingUp
    reply = Reply.json({"found": True})
    assert answer(of, ask, reply) == [reply]
    assert of.report.outcome == "ok"
    assert of.done


def test_what_is_looked_up_in_vain_is_not_found() -> None:
    of = exchange()
    ask = begin(of, about("GET", "/v1/responses/resp_1"))
    assert error_of(answer(of, ask, ApiError("not_found", "gone")))["code"] == "not_found"
    assert kit.reply([begin(exchange(BUREAU), about("GET", "/v1/responses/resp_1"))]).status == 404
    assert kit.reply([begin(exchange(), about("GET", "/v1/responses/resp_1/input_items?limit=0"))]).status == 400


@pytest.mark.parametrize(
    ("query", "param"),
    [("stream=true", "stream"), ("stream=1", "stream"), ("stream=false&starting_after=3", "starting_after")],
)
def test_a_stored_response_is_not_told_as_a_stream(query: str, param: str) -> None:
    error = error_of([begin(exchange(), about("GET", f"/v1/responses/resp_1?{query}"))])
    assert (error["code"], error["param"]) == ("unsupported_parameter", param)


def test_a_stream_that_is_not_wanted_is_no_matter() -> None:
    ask = begin(exchange(), about("GET", "/v1/responses/resp_1?stream=false"))
    assert ask == LookUp(Operation.RETRIEVE_RESPONSE, "resp_1", OWNER, Page())


def test_a_look_up_has_a_bound() -> None:
    of = exchange()
    begin(of, about("DELETE", "/v1/responses/resp_1"))
    assert kit.reply(of.handle(Tick(of.due_at))).status == 503


@pytest.mark.parametrize(
    ("param", "earlier", "own"),
    [
        ("input[3].content[0]", 2, "input[1].content[0]"),
        ("input[1].content[0]", 2, "previous_response_id"),
        ("input[1]", 0, "input[1]"),
        ("input", 2, "input"),
        ("tools[1]", 2, "tools[1]"),
    ],
)
def test_paths_are_those_that_the_client_knows(param: str, earlier: int, own: str) -> None:
    assert own_param(param, earlier) == own
