"""Compaction by a model of Triton's: what it reads, what the client gets, and what the conversation goes on with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from conformance.stream import check_stream
from sidecar.exchange.asks import Ask
from sidecar.exchange.commands import CallUpstream, Command, SendBody
from sidecar.exchange.earlier import Earlier
from sidecar.exchange.events import Answered, RequestComplete
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.load import Load, PrepareContinued
from sidecar.exchange.plan import Prepare
from sidecar.exchange.store import Announce, Keep, Store
from sidecar.generation.style import choose_style
from sidecar.prompts.renderer import Prompt
from sidecar.responses.compaction import ASK, TOLD
from sidecar.responses.errors import ApiError
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.sealing import KEY_BYTES, Sealer, TeamSeal
from sidecar.stored.items import to_lines
from sidecar.surfaces.bureau import BUREAU
from tests.core import kit
from tests.core.sse import parse
from tests.core.surfaces.bureau_requests import SERVED, asked
from tests.core.surfaces.node_requests import CALL, OUTPUT, TOOL

SEALER = Sealer(bytes(KEY_BYTES))
SURFACE = replace(BUREAU, sealer=SEALER, stores=True)
ASKS = (Prepare, Load, PrepareContinued, Announce, Store, Keep)
TEAM = {"x-responses-organization": "org_a", "x-responses-project": "p", "x-responses-environment": "e"}
COMPACT = {**TEAM, ":path": "/v1/responses/compact"}
TRIGGER = {"type": "compaction_trigger"}
HI = {"role": "user", "content": "hi"}
HELLO = {"role": "assistant", "content": "hello"}
SUMMARY = "It was greeted."


def sealed(summary: str = SUMMARY, team: str = "org_a", sealer: Sealer = SEALER) -> dict[str, Any]:
    return {"type": "compaction", "encrypted_content": TeamSeal(sealer, team).seal(summary, "cmp_1")}


class ReadingRenderer(kit.ByteRenderer):
    """Keeps the texts of the messages that it was to render last."""

    said: Sequence[tuple[str, str]] = ()
    tools = 0

    def render(self, request: object, **settings: Any) -> Prompt:
        assert isinstance(request, ResponsesRequest)
        items: Sequence[Any] = request.input
        self.said = [(item.role, item.content[0].text) for item in items if hasattr(item, "role")]
        self.tools = len(request.tools)
        return super().render(request, **settings)


class Played:
    """A request to the surface, and what comes of it."""

    def __init__(self, *, style: str = "none", surface: Any = SURFACE) -> None:
        self.renderer = ReadingRenderer(5)
        model = replace(SERVED, renderer=self.renderer, style=choose_style("", reasoning=style, calls="hermes"))  # type: ignore[arg-type]
        self.exchange = Exchange(surface, kit.catalog(model), ASKS, entropy=bytes(range(18)))
        self.asked: list[type[Command]] = []

    def prepare(self, request: RequestComplete, earlier: Sequence[Any] = ()) -> list[Command]:
        """What is done once all asks before the call have been answered."""
        commands = self.exchange.handle(request)
        while commands and isinstance(commands[0], Ask) and not isinstance(commands[0], Store):
            ask = commands[0]
            self.asked.append(type(ask))
            commands = self.exchange.handle(Answered(ask, self._result(ask, earlier), 100.5))
        return commands

    def _result(self, ask: Ask[Any], earlier: Sequence[Any]) -> object:
        if isinstance(ask, Load):
            return Earlier([to_lines(earlier)])
        if isinstance(ask, PrepareContinued):
            ask = ask.prepare
        if not isinstance(ask, Prepare):
            return None
        try:
            return ask.plan()
        except ApiError as error:
            return error

    def answer(self, request: RequestComplete, *pieces: str, earlier: Sequence[Any] = ()) -> bytes:
        (call,) = self.prepare(request, earlier)
        assert isinstance(call, CallUpstream), call
        commands = [command for piece in pieces for command in kit.upstream(self.exchange, kit.text(piece))]
        commands += kit.upstream(self.exchange, kit.final())
        commands += self.exchange.handle(kit.whole_end())
        if isinstance(commands[-1], Store):
            commands = self.exchange.handle(Answered(commands[-1], True, 102.0))
        return kit.sent(command for command in commands if isinstance(command, SendBody))

    def refusal(self, request: RequestComplete, earlier: Sequence[Any] = ()) -> tuple[str, str | None]:
        error = json.loads(kit.reply(self.prepare(request, earlier)).body)["error"]
        return error["code"], error["param"]


def unsealed(item: dict[str, Any], team: str = "org_a") -> str | None:
    return TeamSeal(SEALER, team).unseal(item["encrypted_content"])


def test_a_conversation_becomes_what_the_user_said_and_one_sealed_item() -> None:
    played = Played()
    body = played.answer(
        asked(COMPACT, input=[HI, HELLO, HI, CALL, OUTPUT], instructions="Be brief."), "It was ", "greeted."
    )
    response = json.loads(body)
    assert list(response) == ["id", "object", "created_at", "output", "usage"]
    assert (response["object"], response["id"][:5]) == ("response.compaction", "resp_")
    *kept, item = response["output"]
    assert [(one["role"], one["content"][0]["text"]) for one in kept] == [("user", "hi")] * 2
    assert len({one["id"] for one in response["output"]}) == 3
    assert (item["type"], item["id"][:4], sorted(item)) == ("compaction", "cmp_", ["encrypted_content", "id", "type"])
    assert unsealed(item) == SUMMARY
    assert SUMMARY not in body.decode()
    assert response["usage"]["output_tokens"] == len(SUMMARY)
    assert played.renderer.said == [("user", "hi"), ("assistant", "hello"), ("user", "hi"), ("user", ASK)]
    assert played.exchange.report.outcome == "completed"


def test_the_conversation_goes_on_from_the_summary() -> None:
    compacted = json.loads(Played().answer(asked(COMPACT, input=[HI, HELLO]), SUMMARY))
    played = Played()
    played.answer(asked(TEAM, input=[*compacted["output"], {"role": "user", "content": "go on"}]), "x")
    assert played.renderer.said == [("user", "hi"), ("user", TOLD + SUMMARY), ("user", "go on")]


def test_a_stored_conversation_is_compacted_and_the_compaction_is_not_stored() -> None:
    played = Played()
    message = {"type": "message", "id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": "before"}]}
    response = json.loads(
        played.answer(asked(COMPACT, input=None, previous_response_id="resp_1"), SUMMARY, earlier=[message])
    )
    assert response["output"][0] == message
    assert played.renderer.said == [("user", "before"), ("user", ASK)]
    assert Announce not in played.asked


def test_what_clients_send_along_has_no_effect() -> None:
    played = Played()
    along = {"tools": [TOOL], "tool_choice": "required", "reasoning": {"effort": "high"}, "store": False, "text": {}}
    assert json.loads(played.answer(asked(COMPACT, **along), SUMMARY))["output"]
    assert played.renderer.tools == 0


@pytest.mark.parametrize(
    ("parameters", "code", "param"),
    [
        ({"stream": True}, "unsupported_parameter", "stream"),
        ({"store": True}, "unsupported_parameter", "store"),
        ({"temperature": 1}, "unsupported_parameter", "temperature"),
        ({"input": None}, "invalid_request", "input"),
        ({"input": []}, "invalid_request", "input"),
        ({"input": 1}, "invalid_request", "input"),
        ({"input": [{"role": "nobody"}]}, "invalid_request", "input[0].role"),
        ({"model": None}, "invalid_request", "model"),
    ],
)
def test_what_a_compaction_does_not_take_is_refused(parameters: dict[str, Any], code: str, param: str) -> None:
    assert Played().refusal(asked(COMPACT, **parameters)) == (code, param)


@pytest.mark.parametrize("stream", [False, True])
def test_a_trigger_asks_for_the_same_in_place_of_an_answer(stream: bool) -> None:
    played = Played()
    body = played.answer(asked(TEAM, input=[HI, HELLO, TRIGGER], tools=[TOOL], stream=stream), "It was ", "greeted.")
    if stream:
        assert not check_stream(body)[1]
        events = parse(body)
        response = events[-1].data["response"]
        assert [event.type for event in events[2:-1]] == [
            "response.output_item.added",
            *["response.compaction.compacting"] * 2,
            "response.output_item.done",
        ]
        assert events[2].data["item"]["encrypted_content"] == ""
        assert SUMMARY not in body.decode()
    else:
        response = json.loads(body)
    (item,) = response["output"]
    assert (response["object"], response["status"], unsealed(item)) == ("response", "completed", SUMMARY)
    assert played.renderer.said[-1] == ("user", ASK)
    assert played.renderer.tools == 0


def test_what_a_trigger_has_compacted_is_there_no_more_but_for_what_the_user_said() -> None:
    played = Played()
    first = [HI, HELLO, {"role": "user", "content": "and"}, CALL, OUTPUT, TRIGGER, sealed()]
    played.answer(asked(TEAM, input=[*first, HELLO, {"role": "user", "content": "go on"}]), "x")
    assert played.renderer.said == [
        ("user", "hi"),
        ("user", "and"),
        ("user", TOLD + SUMMARY),
        ("assistant", "hello"),
        ("user", "go on"),
    ]


def test_a_compaction_is_compacted_again() -> None:
    played = Played()
    played.answer(asked(TEAM, input=[HI, HELLO, TRIGGER, sealed("old"), HI, HELLO, TRIGGER]), SUMMARY)
    assert played.renderer.said == [
        ("user", "hi"),
        ("user", TOLD + "old"),
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", ASK),
    ]


def test_reasoning_is_no_part_of_a_summary_and_counts() -> None:
    played = Played(style="think")
    response = json.loads(played.answer(asked(COMPACT), "<think>", "what a talk", "</think>", "\n\n", SUMMARY))
    assert unsealed(response["output"][-1]) == SUMMARY
    assert response["usage"]["output_tokens_details"]["reasoning_tokens"] > 0


@pytest.mark.parametrize("stream", [False, True])
def test_an_empty_summary_is_a_failure(stream: bool) -> None:
    played = Played()
    (call,) = played.prepare(asked(TEAM, input=[HI, TRIGGER], stream=stream))
    assert isinstance(call, CallUpstream)
    commands = kit.upstream(played.exchange, kit.text(" ") + kit.final()) + played.exchange.handle(kit.whole_end())
    if stream:
        events = parse(kit.sent(commands))
        assert [event.type for event in events][-1] == "error"
        assert not [event for event in events if event.type == "response.completed"]
    else:
        reply = kit.reply(commands)
        assert (reply.status, reply.headers["x-should-retry"]) == (503, "false")


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (sealed(team="org_b"), "not made here for this team"),
        (sealed(sealer=Sealer(bytes(range(KEY_BYTES)))), "not made here for this team"),
        ({"type": "compaction", "encrypted_content": SEALER.seal(SUMMARY, "rs_1")}, "not made here for this team"),
        ({"type": "compaction", "encrypted_content": "gAAAAABn"}, "not made here for this team"),
    ],
)
def test_what_was_not_sealed_for_the_team_is_refused(item: dict[str, Any], words: str) -> None:
    played = Played()
    reply = kit.reply(played.prepare(asked(TEAM, input=[HI, item, HI])))
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"], error["param"]) == (400, "invalid_request", "input[1].encrypted_content")
    assert words in error["message"]


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([HI, TRIGGER, HI], "input[1]"),
        ([TRIGGER, TRIGGER], "input[0]"),
        ([{"type": "compaction"}, HI], "input[0].encrypted_content"),
    ],
)
def test_a_trigger_is_the_last_item_or_has_had_its_way(items: list[Any], param: str) -> None:
    assert Played().refusal(asked(TEAM, input=items)) == ("invalid_request", param)


def test_a_place_is_told_as_its_client_knows_it() -> None:
    message = {"type": "message", "id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": "before"}]}
    request = asked(TEAM, input=[sealed(team="org_b")], previous_response_id="resp_1")
    assert Played().refusal(request, [message]) == ("invalid_request", "input[0].encrypted_content")


@pytest.mark.parametrize("items", [[HI, TRIGGER], [sealed(), HI]])
def test_without_a_key_there_is_no_compaction(items: list[Any]) -> None:
    code, _ = Played(surface=replace(SURFACE, sealer=None)).refusal(asked(TEAM, input=items))
    assert code == "unsupported_parameter"
