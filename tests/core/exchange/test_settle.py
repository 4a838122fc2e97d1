"""What an exchange reserves, and what it settles: the tokens that were delivered, however they came."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.admission.buckets import MICRO, Bucket
from sidecar.admission.entries import Admitted, ReservationRequest, Settlement
from sidecar.admission.slots import SLOT_BYTES, Slot
from sidecar.admission.standing import Standing
from sidecar.backends.triton.contracts.ensemble import Ensemble
from sidecar.backends.triton.contracts.token_level import TokenLevel
from sidecar.config.models import ImageLimits
from sidecar.exchange.catalog import ServedModel
from sidecar.exchange.commands import CallUpstream, Command, SendHead
from sidecar.exchange.events import Answered, ClientGone, Event, RequestComplete
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.plan import Prepare
from sidecar.exchange.reserve import Reserve, Reserved
from sidecar.exchange.settle import Settle
from sidecar.responses.errors import ApiError
from sidecar.surfaces import SURFACES, Surface
from tests.core import kit
from tests.core.backends import text_contracts
from tests.core.exchange.test_exchange_text import piece
from tests.core.surfaces.bureau_requests import SERVED, asked

TEXT = Ensemble(
    text_contracts.names("text_input max_tokens stop_words"), batched=True, accumulates=False, tokens_per_block=0
)
GUIDING = TokenLevel(kit.INPUTS, batched=True, tokens_per_block=0, guides=True)
PROJECT = {
    "x-responses-organization": "org_a",
    "x-responses-project": "support",
    "x-responses-environment": "production",
}
STANDING = Standing(requests=Bucket(60, 59 * MICRO, 0))


@dataclass
class Accounted:
    """An exchange whose asks are answered at once, and whose client is handed everything."""

    exchange: Exchange
    admitted: Admitted = Admitted(STANDING)  # noqa: RUF009 - it cannot be changed
    refused: ApiError | None = None
    asked: ReservationRequest | None = None
    last: Sequence[Settle] = ()

    def handle(self, event: Event) -> Sequence[Command]:
        commands = list(self.exchange.handle(event))
        while commands and isinstance(commands[-1], Prepare | Reserve):
            commands = list(self.exchange.handle(Answered(commands[-1], self.answer(commands[-1]), 100.0)))
        return self.handed(commands)

    def feed(self, data: bytes) -> Sequence[Command]:
        return self.handed(kit.upstream(self.exchange, data))

    def leave(self) -> Settlement:
        """The transport is over, early or not; what is settled."""
        self.exchange.report.delivered.detach()
        last = [*self.exchange.handle(ClientGone()), *self.last][-1]
        assert isinstance(last, Settle)
        return last.settlement()

    def answer(self, ask: Prepare | Reserve) -> object:
        if isinstance(ask, Prepare):
            return ask.plan()
        self.asked = ask.request("w1", ImageLimits())
        slot = Slot(memoryview(bytearray(SLOT_BYTES)), self.asked.id, self.asked.input_tokens)
        return self.refused or Reserved.of(self.asked, slot, self.admitted)

    def handed(self, commands: Sequence[Command]) -> Sequence[Command]:
        delivered = self.exchange.report.delivered
        if delivered.written:
            delivered.cell[0] = delivered.written
        self.last = [command for command in commands if isinstance(command, Settle)]
        return [command for command in commands if not isinstance(command, Settle)]


def accounted(served: ServedModel | None = None, surface: Surface = SURFACES["node"], **changes: Any) -> Accounted:
    asks = (Prepare, Reserve, FetchImages, Settle)
    catalog = kit.catalog(served or kit.model())
    return Accounted(Exchange(surface, catalog, asks, entropy=bytes(range(18))), **changes)


def settle(
    pieces: Iterable[bytes], *, whole: bool = True, served: ServedModel | None = None, **body: Any
) -> Settlement:
    run = accounted(served)
    run.handle(kit.request(**body))
    for data in pieces:
        run.feed(data)
    if whole:
        run.handle(kit.whole_end())
    return run.leave()


def requested(
    event: RequestComplete, served: ServedModel | None = None, surface: Surface = SURFACES["node"]
) -> ReservationRequest:
    run = accounted(served, surface)
    run.handle(event)
    assert run.asked is not None
    return run.asked


@pytest.mark.parametrize(("asked", "reserved"), [(None, 95), (10, 10), (95, 95), (1000, 95)])
def test_the_prompt_and_the_longest_answer_are_reserved(asked: int | None, reserved: int) -> None:
    request = requested(kit.request(max_output_tokens=asked))
    assert (request.input_tokens, request.output_tokens) == (5, reserved)


def test_an_answer_without_a_limit_is_assumed_to_take_512() -> None:
    request = requested(kit.request(), kit.model(context_length=10_000))
    assert request.output_tokens == 512
    request = requested(kit.request(max_output_tokens=10_000), kit.model(context_length=10_000))
    assert request.output_tokens == 9_995


def test_who_asks_is_told_by_authentication_and_the_end_user_by_the_client() -> None:
    event = kit.request(user="u", safety_identifier="s" * 300, stream=True)
    headers = {**event.headers, "x-responses-organization": "org_1", "x-responses-key": "key_1"}
    request = requested(replace(event, headers=headers))
    assert (request.organization_id, request.credential_id, request.end_user) == ("org_1", "key_1", "s" * 256)
    assert (request.request_id, request.node, request.worker, request.stream) == ("r-1", "n1", "w1", True)
    nobody = requested(kit.request(user="a\x00b"))
    assert (nobody.organization_id, nobody.credential_id, nobody.end_user) == ("local", None, None)


def test_a_surface_that_knows_tags_has_them_recorded() -> None:
    headers = {"ib-user": "u", "ib-tags": "a,b"}
    made = requested(asked(headers, ib={"tags": ["c"]}, safety_identifier="s"), SERVED, SURFACES["bureau"])
    assert (made.end_user, made.tags, made.output_tokens) == ("u", "a,b,c", 4096)
    assert requested(kit.request()).tags is None


def test_what_a_receipt_tells_is_recorded() -> None:
    headers = {**PROJECT, "x-client-request-id": "mine", "ib-session": "talk"}
    made = requested(asked(headers, model="letters", ib={"session": "other"}), SERVED, SURFACES["bureau"])
    assert (made.project, made.environment, made.endpoint) == ("support", "production", "responses")
    assert (made.session, made.client_request_id, made.told_model) == ("talk", "mine", "acme/letters")
    by_body = requested(asked({"x-request-id": "r" * 300}, ib={"session": "other"}), SERVED, SURFACES["bureau"])
    assert (by_body.session, by_body.client_request_id, len(by_body.request_id)) == ("other", None, 256)
    assert (by_body.project, by_body.environment) == (None, None)


def test_the_route_that_was_tried_is_told_with_how_it_ended() -> None:
    def attempts(settlement: Settlement) -> Any:
        return json.loads(settlement.attempts or "[]")

    whole = attempts(settle([kit.text("a"), kit.final()]))
    assert whole == [{"route": "triton", "outcome": "completed", "status": None, "ms": None}]
    broken = attempts(settle([kit.text("a"), kit.failure("boom")], whole=False, stream=True))
    assert broken == [{**whole[0], "outcome": "infer_backend_unavailable"}]


def test_bytes_of_images_are_reserved_for_those_that_are_fetched() -> None:
    pixel = "data:image/png;base64,AAAA"
    limits = ImageLimits()
    two = requested(kit.image_request("https://a/1", "https://a/1", pixel), kit.image_model(3))
    assert two.image_bytes == limits.max_bytes
    none = requested(kit.image_request(pixel), kit.image_model())
    assert none.image_bytes == 0


def test_who_is_refused_is_told_so_and_the_model_is_not_called() -> None:
    refused = ApiError("rate_limited", "words", retry_after=9, headers={"x-ratelimit-limit-requests": "60"})
    run = accounted(refused=refused)
    reply = kit.reply(run.handle(kit.request()))
    assert (reply.status, reply.headers["retry-after"]) == (429, "9")
    assert reply.headers["x-ratelimit-limit-requests"] == "60"
    assert run.last == []


@pytest.mark.parametrize("stream", [False, True])
def test_heads_and_errors_after_admission_tell_of_the_limits(stream: bool) -> None:
    run = accounted()
    (call,) = run.handle(kit.request(stream=stream))
    assert isinstance(call, CallUpstream)
    commands = [*run.feed(kit.text("a")), *run.feed(kit.final()), *run.handle(kit.whole_end())]
    (head,) = [command for command in commands if isinstance(command, SendHead)]
    assert head.headers["x-ratelimit-remaining-requests"] == "59"
    failing = accounted()
    failing.handle(kit.request(stream=stream))
    assert kit.reply(failing.feed(kit.failure("boom"))).headers["x-ratelimit-remaining-requests"] == "59"


@given(st.lists(st.integers(1, 400), max_size=12), st.booleans())
def test_the_same_is_settled_wherever_the_upstreams_bytes_are_cut(cuts: list[int], stream: bool) -> None:
    pieces = [piece(text_output=text, num_output_tokens=1, num_input_tokens=9) for text in "abc"]
    data = b"".join([*pieces, kit.final()])
    places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    parts = [data[begin:end] for begin, end in pairwise(places)]
    settlement = settle(parts, served=kit.model(contract=TEXT), stream=stream)
    assert (settlement.input_tokens, settlement.output_tokens, settlement.generated_tokens) == (9, 3, 3)
    assert (settlement.begun, settlement.outcome, settlement.final) == (True, "completed", True)


def test_a_zero_that_the_runtime_tells_stays_zero() -> None:
    told = piece(text_output="a", num_output_tokens=0, num_input_tokens=0)
    settlement = settle([told, kit.final()], served=kit.model(contract=TEXT))
    assert (settlement.begun, settlement.input_tokens, settlement.output_tokens) == (True, 0, 0)


def test_what_nobody_tells_is_counted() -> None:
    settlement = settle(
        [piece(text_output="abc"), piece(text_output="de"), kit.final()], served=kit.model(contract=TEXT)
    )
    assert (settlement.input_tokens, settlement.output_tokens) == (5, 5)


def test_who_leaves_a_stream_pays_for_what_came() -> None:
    settlement = settle([kit.text("a"), kit.text("b")], whole=False, stream=True)
    assert (settlement.begun, settlement.outcome, settlement.output_tokens) == (True, "client_gone", 2)


def test_who_does_not_wait_for_an_answer_pays_for_the_prompt() -> None:
    settlement = settle([kit.text("a"), kit.text("b")], whole=False)
    assert (settlement.begun, settlement.input_tokens, settlement.output_tokens) == (True, 5, 0)
    assert settlement.generated_tokens == 2


@pytest.mark.parametrize("stream", [False, True])
def test_who_leaves_before_the_first_token_pays_nothing(stream: bool) -> None:
    settlement = settle([], whole=False, stream=stream)
    assert (settlement.begun, settlement.outcome) == (False, "client_gone")


def test_a_stream_that_fails_is_paid_as_far_as_it_came() -> None:
    settlement = settle([kit.text("a"), kit.text("b"), kit.failure("boom")], whole=False, stream=True)
    assert (settlement.begun, settlement.output_tokens) == (True, 2)
    assert settlement.outcome == "infer_backend_unavailable"


def test_an_answer_that_fails_as_a_whole_costs_nothing() -> None:
    settlement = settle([kit.text("a"), kit.failure("boom")], whole=False)
    assert (settlement.begun, settlement.outcome) == (False, "infer_backend_unavailable")


def test_an_answer_that_is_cut_is_paid_as_it_is() -> None:
    settlement = settle([kit.text("abc"), kit.final()], max_output_tokens=3)
    assert (settlement.outcome, settlement.input_tokens, settlement.output_tokens) == ("incomplete", 5, 3)


def test_a_guided_answer_is_one_by_each_token() -> None:
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
    guided = kit.model(contract=GUIDING)
    settlement = settle([kit.text("{}"), kit.final()], served=guided, text={"format": schema})
    assert (settlement.output_tokens, settlement.guided_tokens) == (2, 2)
    assert settle([kit.text("{}"), kit.final()]).guided_tokens == 0


def test_the_settlement_is_that_of_the_response() -> None:
    run = accounted()
    run.handle(kit.request())
    run.feed(kit.text("ab"))
    commands = [*run.feed(kit.final()), *run.handle(kit.whole_end())]
    response = json.loads(kit.sent(commands))
    settlement = run.leave()
    assert f"resp_{settlement.id}" == response["id"]
    assert response["usage"]["output_tokens"] == settlement.output_tokens == 2
