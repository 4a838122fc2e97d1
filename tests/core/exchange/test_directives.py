"""What directives make of requests: lowered, refused, sent elsewhere, counted for their end users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sidecar.admission.directives import Directives
from sidecar.config.models import ImageLimits
from sidecar.exchange.asks import Ask
from sidecar.exchange.catalog import ServedModel, ServedNative
from sidecar.exchange.commands import CallUpstream, Command
from sidecar.exchange.direct import Direct
from sidecar.exchange.events import Answered, RequestComplete
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.note_refusal import NoteRefusal
from sidecar.exchange.plan import Prepare
from sidecar.exchange.planned import Plan
from sidecar.exchange.reserve import Reserve
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.responses.sealing import KEY_BYTES, Sealer
from sidecar.surfaces import SURFACES, Surface
from tests.core import kit
from tests.core.exchange import native_kit
from tests.core.surfaces.bureau_requests import SERVED, asked

CALLER = Caller("org_a", "prk_1", "", "support", "production")


def begin(
    directives: Directives,
    event: RequestComplete,
    served: ServedModel | ServedNative = SERVED,
    surface: Surface = SURFACES["bureau"],
) -> tuple[Plan | None, list[Command]]:
    """The plan, and what is to be done when it has been made: a reservation or a refusal."""
    event = replace(event, headers={**event.headers, **CALLER.headers()})
    models = (served,) if isinstance(served, ServedModel) else (kit.model(), served)
    one = Exchange(surface, kit.catalog(*models), (Direct, Prepare, Reserve, NoteRefusal), entropy=bytes(range(18)))
    (ask,) = one.handle(event)
    assert ask == Direct(CALLER)
    assert isinstance(ask, Ask)
    (prepare,) = one.handle(Answered(ask, directives, 100.0))
    assert isinstance(prepare, Prepare)
    plan: Any
    try:
        plan = prepare.plan()
    except ApiError as error:
        return None, one.handle(Answered(prepare, error, 100.1))
    return plan, one.handle(Answered(prepare, plan, 100.1))


def planned(directives: Directives, event: RequestComplete, served: ServedModel | ServedNative = SERVED) -> Plan:
    plan, (command,) = begin(directives, event, served)
    assert plan is not None
    assert isinstance(command, Reserve), command
    return plan


def refused(of: list[Command]) -> tuple[int, str, str]:
    reply = kit.reply(of)
    return reply.status, reply.outcome, reply.body.decode()


@pytest.mark.parametrize(
    ("body", "most", "applied"),
    [
        ({}, 10, 10),
        ({"max_output_tokens": None}, 10, 10),
        ({"max_output_tokens": 11}, 10, 10),
        ({"max_output_tokens": 9}, 10, 9),
        ({}, 5000, 4096),
        ({"max_output_tokens": 6000}, 5000, 5000),
        ({"model": "org/fast"}, 5, 5),
        ({"model": "org/fast"}, 4000, 4000),
    ],
)
def test_the_limit_of_an_answer_is_lowered_and_told_as_applied(body: Any, most: int, applied: int) -> None:
    plan = planned(Directives(max_output_tokens=most), asked(**body))
    assert plan.response["max_output_tokens"] == applied
    assert plan.most_tokens == applied


def test_a_preset_is_lowered_too() -> None:
    alias = {"name": "org/mine", "team": "org_a", "preset": {"max_output_tokens": 70}}
    served = kit.model(context_length=10_000, catalog={"slug": "acme/letters", "aliases": [alias]})
    for most, applied in ((50, 50), (90, 70)):
        plan = planned(Directives(max_output_tokens=most), asked(model="org/mine"), served)
        assert plan.response["max_output_tokens"] == applied


@pytest.mark.parametrize("wrong", ["many", True, 0, [9]])
def test_what_is_no_limit_is_refused_as_ever(wrong: Any) -> None:
    _, commands = begin(Directives(max_output_tokens=5), asked(max_output_tokens=wrong))
    assert refused(commands)[:2] == (400, "invalid_request")


def test_a_prompt_that_is_too_long_is_refused_and_noted() -> None:
    planned(Directives(max_input_tokens=5), asked())
    _, commands = begin(Directives(max_input_tokens=4), asked())
    status, outcome, body = refused(commands[:1])
    assert (status, outcome) == (403, "policy_denied")
    assert "5 input tokens; a directive allows at most 4" in body
    (note,) = commands[1:]
    assert isinstance(note, NoteRefusal)
    assert note.reserve.request("w", ImageLimits()).input_tokens == 5


def test_an_excluded_vendor_s_model_is_refused() -> None:
    planned(Directives(excluded_vendors=("openai",)), asked())
    _, commands = begin(Directives(excluded_vendors=("openai", "acme")), asked())
    assert refused(commands)[:2] == (403, "policy_denied")


def native_request(**body: Any) -> RequestComplete:
    return native_kit.request(**body)


def routes(directives: Directives, served: ServedNative) -> tuple[int, ...]:
    plan: Any = planned(directives, native_request(), served)
    found: tuple[int, ...] = plan.routes
    return found


def test_routes_of_excluded_vendors_are_left_out() -> None:
    served = native_kit.model()
    assert routes(Directives(), served) == (0, 1)
    assert routes(Directives(excluded_vendors=("up0",)), served) == (1,)
    # The model's own name does not say who serves it.
    assert routes(Directives(excluded_vendors=("openai",)), served) == (0, 1)
    _, commands = begin(Directives(excluded_vendors=("up0", "up1")), native_request(), served)
    assert refused(commands)[:2] == (403, "policy_denied")


def test_where_nobody_may_train_only_who_has_agreed_is_called() -> None:
    served = native_kit.model()
    first, second = served.routes
    agreed = replace(second, upstream=second.upstream.model_copy(update={"no_training": True}))
    mixed = replace(served, routes=(first, agreed))
    assert routes(Directives(no_training=True), mixed) == (1,)
    assert routes(Directives(no_training=False), mixed) == (0, 1)
    _, commands = begin(Directives(no_training=True), native_request(), served)
    assert refused(commands)[:2] == (403, "policy_denied")


def test_a_native_answer_s_limit_is_lowered_on_its_way() -> None:
    for body in ({}, {"max_output_tokens": 50}):
        plan: Any = planned(Directives(max_output_tokens=7), native_request(**body), native_kit.model())
        assert (plan.most_tokens, plan.response["max_output_tokens"]) == (7, 7)
        assert b'"max_output_tokens":7' in plan.body


@pytest.mark.parametrize("directives", [Directives(no_training=True), Directives(retains_nothing=True)])
def test_no_upstream_compacts_where_data_rules_hold(directives: Directives) -> None:
    served = native_kit.model()
    agreed = tuple(
        replace(route, upstream=route.upstream.model_copy(update={"no_training": True})) for route in served.routes
    )
    event = native_request()
    compact = replace(event, headers={**event.headers, ":path": "/v1/responses/compact"})
    for path_of, denied in ((event, False), (compact, True)):
        plan, commands = begin(directives, path_of, replace(served, routes=agreed))
        assert (plan is None) is denied
        if denied:
            assert refused(commands)[:2] == (403, "policy_denied")


def test_what_an_end_user_may_have_goes_with_the_reservation() -> None:
    allowed = Directives(user_requests_per_minute=5, user_tokens_per_minute=1000)
    _, (reserve,) = begin(allowed, asked({"ib-user": "ada"}))
    assert isinstance(reserve, Reserve)
    limits = reserve.request("w", ImageLimits()).user_limits
    assert [(limit.key.kind, limit.limit) for limit in limits] == [("user_requests", 5), ("user_tokens", 1000)]
    assert {limit.key.organization_id for limit in limits} == {"org_a"}
    _, (nobody,) = begin(allowed, asked())
    assert isinstance(nobody, Reserve)
    assert nobody.request("w", ImageLimits()).user_limits == ()


def test_the_node_s_requests_have_no_directives() -> None:
    one = Exchange(SURFACES["node"], kit.catalog(kit.model()), (Direct, Prepare), entropy=bytes(range(18)))
    (ask,) = one.handle(kit.request())
    assert isinstance(ask, Prepare)
    (call,) = one.handle(Answered(ask, ask.plan(), 100.1))
    assert isinstance(call, CallUpstream)


def test_a_compaction_here_is_lowered_and_takes_place_where_nothing_may_be_kept() -> None:
    surface = replace(SURFACES["bureau"], sealer=Sealer(bytes(KEY_BYTES)))
    event = asked({":path": "/v1/responses/compact"})
    for directives, most in ((Directives(max_output_tokens=7), 7), (Directives(no_training=True), 4096)):
        plan, _ = begin(directives, event, surface=surface)
        assert plan is not None and plan.most_tokens == most
