"""Exchanges about requests that were made before, and what is noted of those that are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sidecar.admission.entries import ReservationRequest
from sidecar.config.models import ImageLimits
from sidecar.exchange.asks import Ask
from sidecar.exchange.commands import Command
from sidecar.exchange.events import Answered, RequestComplete, Tick
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.look_up_requests import LookUpRequests
from sidecar.exchange.note_refusal import REFUSALS, NoteRefusal
from sidecar.exchange.phases import Ended, LookingUp, Phase
from sidecar.exchange.plan import Prepare
from sidecar.exchange.reserve import Reserve
from sidecar.exchange.settle import Settle
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.responses.page import Page
from sidecar.responses.reply import Reply
from sidecar.surfaces.bureau import BUREAU
from tests.core import kit
from tests.core.surfaces.bureau_requests import SERVED, asked

ASKS = (Prepare, Reserve, LookUpRequests, Settle, NoteRefusal)
CALLER = Caller("org_a", "prk_1", "", "support", "production")


def exchange(asks: Any = ASKS) -> Exchange:
    return Exchange(BUREAU, kit.catalog(SERVED), asks, entropy=bytes(range(18)))


def about(path: str) -> RequestComplete:
    return replace(kit.request(), headers={":method": "GET", ":path": path, **CALLER.headers()}, body=b"")


def error(of: list[Command]) -> tuple[int, str]:
    reply = kit.reply(of)
    return reply.status, reply.outcome


@pytest.mark.parametrize(
    ("path", "id_", "page"),
    [
        ("/v1/requests/7a%2F1", "7a/1", Page()),
        ("/v1/requests", "", Page()),
        ("/v1/requests?limit=3&after=r&order=asc", "", Page(3, "asc", "r")),
    ],
)
def test_what_is_asked_about_requests_is_looked_up(path: str, id_: str, page: Page) -> None:
    one = exchange()
    (ask,) = one.handle(about(path))
    assert ask == LookUpRequests(id_, CALLER, page)
    phases: list[type[Phase]] = [one.phase]
    found = Reply.json({"id": "r"})
    assert one.handle(Answered(ask, found, 101.0)) == [found]
    assert [*phases, one.phase] == [LookingUp, Ended]


def test_a_page_that_cannot_be_is_refused() -> None:
    assert error(exchange().handle(about("/v1/requests?limit=0"))) == (400, "invalid_request")


def test_where_nothing_is_accounted_for_there_is_no_request() -> None:
    for path in ("/v1/requests/r", "/v1/requests"):
        assert error(exchange((Prepare,)).handle(about(path))) == (404, "not_found")


def test_a_log_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    one = exchange()
    one.handle(about("/v1/requests/r"))
    assert error(one.handle(Tick(one.due_at))) == (503, "node_unavailable")


def refused(result: ApiError, headers: dict[str, str]) -> list[Command]:
    """What is to be done when admission has refused a request."""
    one = exchange()
    (prepare,) = one.handle(asked(headers))
    assert isinstance(prepare, Prepare)
    (reserve,) = one.handle(Answered(prepare, prepare.plan(), 100.1))
    assert isinstance(reserve, Ask)
    return one.handle(Answered(reserve, result, 100.2))


@pytest.mark.parametrize("code", REFUSALS)
def test_what_is_refused_is_noted_for_its_project(code: str) -> None:
    reply, note = refused(ApiError(code, "words"), CALLER.headers())
    assert isinstance(reply, Reply) and isinstance(note, NoteRefusal)
    assert (reply.outcome, note.code) == (code, code)
    request: ReservationRequest = note.reserve.request("w1", ImageLimits())
    assert (request.project, request.told_model, request.credential_id) == ("support", "acme/letters", "prk_1")


def test_no_more_is_noted() -> None:
    without_project = replace(CALLER, project="", environment="").headers()
    assert len(refused(ApiError("rate_limited", "words"), without_project)) == 1
    assert len(refused(ApiError("node_unavailable", "words"), CALLER.headers())) == 1
    assert len(exchange().handle(asked({**CALLER.headers(), "ib-user": "x" * 300}))) == 1
