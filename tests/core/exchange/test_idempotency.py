"""Exchanges with an idempotency key: it is claimed first of all, and stands for exactly what the client was given."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sidecar.exchange import recording
from sidecar.exchange.asks import Ask
from sidecar.exchange.claim import Claimed, ClaimKey, EndClaim
from sidecar.exchange.commands import CallUpstream, Command, SendBody, SendHead
from sidecar.exchange.events import Abort, Answered, ClientGone, Event, RequestComplete, Tick
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.phases import Calling, Ended, Preparing
from sidecar.exchange.plan import Prepare
from sidecar.exchange.store import Announce, Keep, Store
from sidecar.responses.errors import ApiError
from sidecar.responses.ids import ResponseIds
from sidecar.responses.marks import NOTHING, mark_of
from sidecar.responses.reply import Reply
from sidecar.stored.claims import Claim, Use
from sidecar.stored.owner import Owner
from sidecar.surfaces.bureau import BUREAU
from tests.core import kit
from tests.core.surfaces.bureau_requests import SERVED, asked

KEEPING = replace(BUREAU, stores=True)
ASKS = (ClaimKey, Prepare, Announce, Store, Keep, EndClaim)
HEADERS = {
    "x-responses-organization": "org_a",
    "x-responses-key": "key_1",
    "x-responses-project": "support",
    "x-responses-environment": "production",
    "idempotency-key": "k-1",
}
OWNER = Owner("org_a", "support", "production")
CLAIM = Claim("id", OWNER, "dk", "asked", "attempt")
KEPT = Reply(200, {"content-type": "application/json", "idempotency-replayed": "true"}, b"{}", "replayed")


def exchange(surface: Any = KEEPING) -> Exchange:
    return Exchange(surface, kit.catalog(SERVED), ASKS, entropy=bytes(range(18)))


def begin(of: Exchange, event: RequestComplete) -> ClaimKey:
    (ask,) = of.handle(event)
    assert isinstance(ask, ClaimKey)
    return ask


def answer(of: Exchange, ask: Command, result: object) -> list[Command]:
    assert isinstance(ask, Ask)
    return of.handle(Answered(ask, result, 100.5))


def claimed(of: Exchange, *, recorded: bool = True, **body: Any) -> list[Command]:
    """What is done once the key is held and the request has been looked at."""
    headers = HEADERS if recorded else {name: value for name, value in HEADERS.items() if name != "idempotency-key"}
    (ask,) = of.handle(asked(headers, **body))
    if recorded:
        (ask,) = answer(of, ask, Claimed(CLAIM, ("earlier",)))
    assert isinstance(ask, Prepare)
    try:
        return answer(of, ask, ask.plan())
    except ApiError as error:
        return answer(of, ask, error)


def called(of: Exchange, **body: Any) -> None:
    (call,) = claimed(of, **body)
    assert isinstance(call, CallUpstream)


def told(of: Exchange, *events: bytes | Event) -> list[Command]:
    commands = list[Command]()
    for event in events:
        commands += kit.upstream(of, event) if isinstance(event, bytes) else of.handle(event)
    return commands


def end_of(commands: list[Command]) -> EndClaim:
    end = commands[-1]
    assert isinstance(end, EndClaim)
    return end


def test_the_key_is_claimed_before_anything_is_done() -> None:
    of = exchange()
    event = asked(HEADERS)
    ask = begin(of, event)
    ids = ResponseIds(ask.use.attempt)
    assert ask.use == Use(OWNER, "key_1", "k-1", "POST", "/v1/responses", event.body, ids.ulid)
    assert of.phase is Preparing
    (prepare,) = answer(of, ask, Claimed(CLAIM, ()))
    assert isinstance(prepare, Prepare)
    plan = prepare.plan()
    assert plan.ids == ids  # type: ignore[union-attr]


def test_an_answer_that_was_given_before_is_all_there_is() -> None:
    of = exchange()
    assert answer(of, begin(of, asked(HEADERS)), KEPT) == [KEPT]
    assert of.phase is Ended
    assert (of.report.outcome, of.report.model) == ("replayed", None)


@pytest.mark.parametrize(
    ("code", "status"), [("idempotency_in_progress", 409), ("idempotency_mismatch", 422), ("policy_denied", 403)]
)
def test_what_does_not_hold_the_key_is_refused(code: str, status: int) -> None:
    of = exchange()
    reply = kit.reply(answer(of, begin(of, asked(HEADERS)), ApiError(code, "no", "idempotency-key")))
    assert (reply.status, "retry-after" in reply.headers) == (status, status == 409)


def test_a_whole_answer_is_kept_as_it_was_given() -> None:
    of = exchange()
    called(of)
    commands = told(of, kit.text("Hi"), kit.final(), kit.whole_end())
    end = end_of(commands)
    assert (end.answered, end.claimed.earlier) == (True, ("earlier",))
    kept = end.answer
    assert kept is not None
    assert (kept.status, kept.body) == (200, kit.sent(commands))
    assert json.loads(kept.body)["status"] == "completed"
    assert kept.headers == {"content-type": "application/json"}


def test_one_that_is_stored_as_well_says_so_again() -> None:
    of = exchange()
    (announce,) = claimed(of, store=True)
    answer(of, announce, None)
    store = told(of, kit.text("Hi"), kit.final(), kit.whole_end())[-1]
    kept = end_of(answer(of, store, True)).answer
    assert kept is not None
    assert json.loads(kept.body)["store"] is True


def test_a_stream_is_kept_as_its_events_without_comments() -> None:
    of, ordinary = exchange(), exchange()
    pieces = [kit.text(letter) for letter in "Hello"]
    called(of, stream=True)
    commands = told(of, *pieces[:2], Tick(105.0), *pieces[2:], kit.final(), kit.whole_end())
    assert SendBody(b": keep-alive\n\n") in commands
    kept = end_of(commands).answer
    assert kept is not None
    assert kept.headers == {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    assert kept.body == kit.sent(commands).replace(b": keep-alive\n\n", b"")
    # Whether it is gathered changes nothing for its client.
    claimed(ordinary, recorded=False, stream=True)
    same = told(ordinary, *pieces[:2], Tick(105.0), *pieces[2:], kit.final(), kit.whole_end())
    assert kit.sent(same) == kit.sent(commands)
    assert not any(isinstance(command, EndClaim) for command in same)


def test_one_that_was_cut_is_kept() -> None:
    of = exchange()
    called(of, max_output_tokens=1)
    end = end_of(told(of, kit.text("H"), kit.final(), kit.whole_end()))
    assert (end.report.outcome, end.answered) == ("incomplete", True)


def test_one_that_is_too_large_is_answered_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_BYTES", 2_000)
    of = exchange()
    called(of, stream=True)
    commands = told(of, *[kit.text("x") for _ in range(30)], kit.final(), kit.whole_end())
    end = end_of(commands)
    assert (end.answered, end.answer) == (True, None)
    assert len(kit.sent(commands)) > 2_000
    assert end.claimed.recording._pieces == []


BROKEN = (kit.text("some"), kit.failure("CUDA error"))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        (BROKEN, "infer_backend_unavailable"),
        ((kit.failure("CUDA error"),), "infer_backend_unavailable"),
        ((kit.broken_end(),), "infer_backend_unavailable"),
        ((Abort(ApiError("node_unavailable", "stopping")),), "node_unavailable"),
        ((kit.text("some"), Tick(400.0)), "deadline_exceeded"),
        ((kit.text("some"), ClientGone()), "client_gone"),
        ((ClientGone(),), "client_gone"),
    ],
)
def test_what_another_try_may_do_better_is_not_kept(
    events: tuple[bytes | Event, ...], outcome: str, stream: bool
) -> None:
    of = exchange()
    called(of, stream=stream)
    end = end_of(told(of, *events))
    assert (end.report.outcome, end.answered) == (outcome, False)


def test_what_the_model_refuses_is_kept() -> None:
    of = exchange()
    called(of)
    commands = told(of, kit.failure("prompt length (12) exceeds the maximum"))
    end = end_of(commands)
    reply = kit.reply(commands[:-1])
    kept = end.answer
    assert kept is not None
    assert (end.answered, kept.status, kept.body) == (True, 400, reply.body)


def test_what_is_refused_before_the_model_is_called_is_kept_too() -> None:
    of = exchange()
    *reply, end = claimed(of, temperature=7)
    assert isinstance(end, EndClaim)
    kept = end.answer
    assert kept is not None
    assert (end.answered, kept.status, kept.body) == (True, 400, kit.reply(reply).body)


@pytest.mark.parametrize(
    ("code", "answered"),
    [
        ("credits_exhausted", False),
        ("response_in_progress", False),
        ("rate_limited", False),
        ("capacity_unavailable", False),
        ("policy_denied", True),
        ("not_found", True),
    ],
)
def test_a_refusal_that_passes_is_not_kept(code: str, answered: bool) -> None:
    of = exchange()
    called(of)
    assert end_of(of.handle(Abort(ApiError(code, "no")))).answered is answered


def test_a_client_that_leaves_while_it_waits_leaves_nothing_to_end() -> None:
    of = exchange()
    begin(of, asked(HEADERS))
    assert of.handle(ClientGone()) == []


@pytest.mark.parametrize(
    ("reserved", "outcome", "delivered", "given_back"),
    [
        (True, "infer_backend_unavailable", 0, True),
        (True, "infer_backend_unavailable", 7, True),
        (True, "client_gone", 0, True),
        (True, "client_gone", 7, False),
        (True, "deadline_exceeded", 7, False),
        (False, "client_gone", 0, False),
    ],
)
def test_who_left_pays_for_what_it_was_given(reserved: bool, outcome: str, delivered: int, given_back: bool) -> None:
    of = exchange()
    called(of)
    end = replace(end_of(of.handle(ClientGone())), reserved=reserved)
    end.report.outcome = outcome
    end.report.delivered.cell = [mark_of(delivered, 0) if delivered else NOTHING]
    assert end.given_back is given_back


@pytest.mark.parametrize("key", ["", "a b", "é", "k" * 256, "tab\t"])
def test_what_cannot_be_a_key_is_refused(key: str) -> None:
    error = error_of(exchange().handle(asked({**HEADERS, "idempotency-key": key})))
    assert (error["code"], error["param"]) == ("invalid_request", "idempotency-key")


@pytest.mark.parametrize("key", ["k", "k" * 255, '"8e03978e-40d5-43dd-bc93-6894a57f9324"'])
def test_what_can_be_a_key_is_taken(key: str) -> None:
    assert begin(exchange(), asked({**HEADERS, "idempotency-key": key})).use.key == key


@pytest.mark.parametrize("asks", [ASKS, (Prepare,)])
def test_where_no_answers_are_kept_it_is_refused(asks: tuple[Any, ...]) -> None:
    of = Exchange(BUREAU, kit.catalog(SERVED), asks, entropy=bytes(range(18)))
    commands = of.handle(asked(HEADERS))
    if isinstance(ask := commands[0], Prepare):
        with pytest.raises(ApiError) as refused:
            ask.plan()
        commands = answer(of, ask, refused.value)
    error = error_of(commands)
    assert (error["code"], error["param"]) == ("unsupported_parameter", "idempotency-key")


def test_a_body_that_is_too_large_claims_nothing() -> None:
    of = exchange()
    event = asked(HEADERS)
    (ask,) = of.handle(replace(event, body_bytes=2_000_000))
    assert isinstance(ask, Prepare)


def test_the_node_surface_takes_no_notice_of_the_header() -> None:
    of = kit.exchange()
    (ask,) = of.handle(replace(kit.request(), headers={**kit.request().headers, "idempotency-key": "a b"}))
    assert isinstance(ask, Prepare)
    (call,) = answer(of, ask, ask.plan())
    assert isinstance(call, CallUpstream)
    assert of.phase is Calling


def test_the_head_that_is_kept_says_nothing_of_one_request() -> None:
    of = exchange()
    called(of)
    commands = told(of, kit.text("Hi"), kit.final(), kit.whole_end())
    heads = [command for command in commands if isinstance(command, SendHead)]
    kept = end_of(commands).answer
    assert kept is not None
    assert "server-timing" in heads[0].headers
    assert "server-timing" not in kept.headers


def error_of(commands: list[Command]) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(kit.reply(commands).body)["error"]
    return error
