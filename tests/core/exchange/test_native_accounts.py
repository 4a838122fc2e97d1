"""What a request for a native model reserves, and what is settled of its answer."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sidecar.admission.buckets import MICRO, Bucket
from sidecar.admission.entries import Admitted, ReservationRequest, Settlement
from sidecar.admission.slots import SLOT_BYTES, Slot
from sidecar.admission.standing import Standing
from sidecar.config.models import ImageLimits
from sidecar.exchange.commands import CallUpstream, Command
from sidecar.exchange.events import Answered, ClientGone, RequestComplete
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.plan import Prepare
from sidecar.exchange.reserve import Reserve, Reserved
from sidecar.exchange.settle import Settle
from sidecar.surfaces.bureau import BUREAU
from sidecar.surfaces.surface import Surface
from tests.core import kit
from tests.core.backends.native.streams import MESSAGE, USAGE, delta, ending, opening, response
from tests.core.exchange import native_kit as native
from tests.core.exchange.native_kit import EVENTS, JSON, NODE

ADMITTED = Admitted(Standing(requests=Bucket(60, 59 * MICRO, 0)))
TEXT = "x" * 400


def reserved(event: RequestComplete, surface: Surface = BUREAU) -> tuple[Exchange, ReservationRequest]:
    """An exchange whose first route has been called, and what was reserved for it."""
    of = native.exchange(surface=surface, asks=(Prepare, Reserve, Settle))
    (ask,) = native.begin(of, event)
    assert isinstance(ask, Reserve)
    request = ask.request("w1", ImageLimits())
    slot = Slot(memoryview(bytearray(SLOT_BYTES)), request.id, request.input_tokens)
    (call,) = of.handle(Answered(ask, Reserved.of(request, slot, ADMITTED), 100.0))
    assert isinstance(call, CallUpstream)
    return of, request


def settled(of: Exchange, commands: Iterable[Command]) -> Settlement:
    """What is settled once the client has been handed all that was written."""
    delivered = of.report.delivered
    delivered.cell[0] = delivered.written
    delivered.detach()
    (settle,) = [command for command in (*commands, *of.handle(ClientGone())) if isinstance(command, Settle)]
    return settle.settlement()


def test_what_the_upstream_will_count_is_reserved_as_an_estimate() -> None:
    small, large = (reserved(native.request(input=text))[1] for text in ("hi", "hi" + TEXT))
    assert large.input_tokens == small.input_tokens + 100
    assert small.output_tokens == 4096
    assert reserved(native.request(max_output_tokens=9))[1].output_tokens == 9
    assert reserved(native.request(NODE), NODE)[1].output_tokens == 512


def test_a_whole_answer_costs_what_the_upstream_says() -> None:
    of, _ = reserved(native.request(stream=True))
    native.head(of, EVENTS)
    settlement = settled(of, kit.upstream(of, opening() + delta(2, TEXT) + ending(3)))
    assert (settlement.outcome, settlement.begun) == ("completed", True)
    assert (settlement.input_tokens, settlement.cached_tokens) == (11, 3)
    assert (settlement.output_tokens, settlement.reasoning_tokens, settlement.generated_tokens) == (7, 2, 7)
    assert settlement.attempts is not None
    assert json.loads(settlement.attempts) == [{"route": "up0", "outcome": "completed", "status": 200, "ms": 500}]


def test_a_stream_that_breaks_costs_what_was_delivered_as_an_estimate_within_its_limit() -> None:
    for limit, tokens in ((500, 101), (50, 50)):
        of, request = reserved(native.request(stream=True, max_output_tokens=limit))
        native.head(of, EVENTS)
        commands = kit.upstream(of, opening() + delta(2, TEXT) + delta(3, "y")) + of.handle(native.end(whole=False))
        settlement = settled(of, commands)
        assert (settlement.outcome, settlement.begun) == ("infer_backend_unavailable", True)
        assert (settlement.input_tokens, settlement.output_tokens) == (request.input_tokens, tokens)


def test_a_client_that_leaves_pays_what_it_was_given() -> None:
    of, request = reserved(native.request(stream=True))
    native.head(of, EVENTS)
    settlement = settled(of, kit.upstream(of, opening() + delta(2, TEXT)))
    assert (settlement.outcome, settlement.begun) == ("client_gone", True)
    assert (settlement.input_tokens, settlement.output_tokens) == (request.input_tokens, 100)


def test_one_that_leaves_before_its_answer_pays_nothing() -> None:
    of, _ = reserved(native.request())
    assert not settled(of, native.head(of, JSON)).begun


def test_an_answer_that_failed_costs_nothing() -> None:
    of, _ = reserved(native.request())
    body = json.dumps(response("failed", error={"code": "server_error"}, output=[MESSAGE], usage=USAGE)).encode()
    settlement = settled(of, native.answers(of, JSON, body))
    assert (settlement.outcome, settlement.begun) == ("infer_backend_unavailable", False)
