"""A plan that was made in another process is the plan that would have been made here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sidecar.admission.directives import Directives
from sidecar.backends.triton import errors
from sidecar.config.models import SurfaceSettings
from sidecar.exchange.asks import Facts
from sidecar.exchange.catalog import Catalog, ServedModel
from sidecar.exchange.direct import Direct
from sidecar.exchange.events import RequestComplete
from sidecar.exchange.native_plan import NativePlan
from sidecar.exchange.plan import Prepare, TritonPlan, make_plan
from sidecar.exchange.report import Report
from sidecar.responses.errors import ApiError
from sidecar.responses.sealing import KEY_BYTES, Sealer
from sidecar.server.elsewhere import Elsewhere
from sidecar.surfaces import SURFACES
from sidecar.surfaces.surface import Surface
from tests.core.exchange import native_kit
from tests.core.kit import catalog, image_model, image_request, model, request
from tests.core.surfaces.bureau_requests import SERVED, asked

SEALING = replace(
    SURFACES["node"], settings=SurfaceSettings(encrypted_reasoning="sealed"), sealer=Sealer(bytes(KEY_BYTES))
)
TOOL: Any = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
IMAGE = "data:image/png;base64,AAAA"


def both_ways(sent: RequestComplete, surface: Surface, served: Catalog) -> tuple[Facts, Elsewhere]:
    """What an exchange knows once a contract has been told, and the way to a process that was forked before."""
    forked = [replace(one, contract=None) if isinstance(one, ServedModel) else one for one in served]
    unknown = Catalog(served.node, served.keep_alive, forked)
    return Facts(surface, served, sent, bytes(range(18))), Elsewhere(unknown, {"other": SURFACES["node"], "s": surface})


@pytest.mark.parametrize(
    "sent",
    [
        request(),
        request(stream=True, tools=[TOOL], metadata={"k": "v"}),
        request(reasoning={"effort": "low"}, include=["reasoning.encrypted_content"]),
        image_request(IMAGE),
    ],
)
def test_a_plan_comes_back_as_it_was_made(sent: RequestComplete) -> None:
    facts, elsewhere = both_ways(sent, SEALING, catalog(image_model()))
    call = elsewhere.call_of(Prepare(facts))
    assert not call.request.body
    assert elsewhere.read(elsewhere.work(call, sent.body), facts) == make_plan(facts)


def test_a_compaction_comes_back_with_the_key_of_this_side() -> None:
    surface = replace(SURFACES["bureau"], sealer=Sealer(bytes(KEY_BYTES)))
    facts, elsewhere = both_ways(asked({":path": "/v1/responses/compact"}), surface, catalog(SERVED))
    plan = elsewhere.read(elsewhere.work(elsewhere.call_of(Prepare(facts)), facts.request.body), facts)
    assert isinstance(plan, TritonPlan) and plan.compaction is not None
    assert plan == make_plan(facts)
    assert plan.compaction.seal.sealer is surface.sealer


def test_directives_are_kept_to_there() -> None:
    facts, elsewhere = both_ways(asked(max_output_tokens=50), SURFACES["bureau"], catalog(SERVED))
    facts.add(Direct, Directives(max_output_tokens=7))
    plan = elsewhere.read(elsewhere.work(elsewhere.call_of(Prepare(facts)), facts.request.body), facts)
    assert plan == make_plan(facts)
    assert isinstance(plan, TritonPlan)
    assert plan.response["max_output_tokens"] == 7


def test_the_model_is_the_one_that_the_exchange_knows() -> None:
    facts, elsewhere = both_ways(request(), SURFACES["node"], catalog(model()))
    plan = elsewhere.read(elsewhere.work(elsewhere.call_of(Prepare(facts)), facts.request.body), facts)
    assert isinstance(plan, TritonPlan)
    assert plan.model is facts.catalog.model("letters")


def test_a_native_plan_goes_without_the_upstream_s_key_and_finds_it_on_this_side() -> None:
    sent = native_kit.request(tools=[TOOL], previous_response_id=None, metadata={"k": "v"})
    served = catalog(native_kit.model()).with_authorizations({"up0": "Bearer changed"})
    facts, elsewhere = both_ways(sent, SURFACES["bureau"], served)
    written = elsewhere.work(elsewhere.call_of(Prepare(facts)), sent.body)
    assert b"Bearer" not in written
    plan = elsewhere.read(written, facts)
    assert plan == make_plan(facts)
    assert isinstance(plan, NativePlan)
    assert plan.live(None, Report(), 100.0).call.headers["authorization"] == "Bearer changed"


def test_a_refusal_is_raised_there() -> None:
    facts, elsewhere = both_ways(request(temperature=9), SURFACES["node"], catalog(model()))
    with pytest.raises(ApiError, match="temperature"):
        elsewhere.work(elsewhere.call_of(Prepare(facts)), facts.request.body)


def test_a_model_that_does_not_answer_is_refused_there_too() -> None:
    served = catalog(model()).with_outage("letters", errors.outage_of("unreachable"))
    facts, elsewhere = both_ways(request(), SURFACES["node"], served)
    with pytest.raises(ApiError, match="not available"):
        elsewhere.work(elsewhere.call_of(Prepare(facts)), facts.request.body)
