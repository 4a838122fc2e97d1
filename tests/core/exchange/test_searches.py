"""Web searches of native upstreams: as many are held for as may be made, and those that were made are charged."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.admission.entries import Settlement
from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.plan import Prepare
from sidecar.exchange.reserve import MOST_SEARCHES, Reserve
from sidecar.exchange.settle import Settle
from sidecar.responses.json_text import json_bytes
from tests.core.backends.native.streams import MESSAGE, USAGE, delta, ending, event, opening, response
from tests.core.exchange import native_kit as native
from tests.core.exchange.native_kit import EVENTS, JSON
from tests.core.exchange.test_settle import Accounted

SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}
OPENED = {**SEARCH, "id": "ws_2", "action": {"type": "open_page", "url": "https://a"}}
OLD = {name: value for name, value in SEARCH.items() if name != "action"}


def begun(most: int = 3, **body: Any) -> Accounted:
    """A request that may search so often, reserved for and called."""
    run = Accounted(native.exchange(asks=(Prepare, Reserve, Settle)))
    tools = [{"type": "web_search"}]
    (call,) = run.handle(native.request(tools=tools, max_tool_calls=most, **body))
    assert isinstance(call, CallUpstream)
    return run


def searched(number: int) -> bytes:
    return event("response.web_search_call.completed", number, item_id=f"ws_{number}", output_index=0)


def streamed(*parts: bytes, most: int = 3) -> Settlement:
    run = begun(most, stream=True)
    native.head(run.exchange, EVENTS)
    for part in (opening(), *parts):
        run.feed(part)
    return run.leave()


@pytest.mark.parametrize(("most", "held"), [(1, 1), (3, 3), (10**9, MOST_SEARCHES)])
def test_as_many_are_held_for_as_may_be_made(most: int, held: int) -> None:
    run = begun(most)
    assert run.asked is not None
    assert run.asked.searches == held


def test_nothing_is_held_for_who_does_not_search() -> None:
    run = Accounted(native.exchange(asks=(Prepare, Reserve, Settle)))
    run.handle(native.request(max_tool_calls=3))
    assert run.asked is not None
    assert run.asked.searches == 0


def test_those_of_a_whole_stream_are_those_that_it_shows() -> None:
    output = [SEARCH, OPENED, OLD, MESSAGE]
    settlement = streamed(searched(2), searched(3), searched(4), delta(5, "a"), ending(6, output=output))
    assert (settlement.searches, settlement.outcome, settlement.begun) == (2, "completed", True)


def test_of_a_stream_that_its_client_leaves_those_that_had_been_completed_count() -> None:
    settlement = streamed(searched(2), searched(3))
    assert (settlement.searches, settlement.outcome, settlement.begun) == (2, "client_gone", True)


def test_no_more_are_charged_than_were_held_for() -> None:
    assert streamed(delta(2, "a"), ending(3, output=[SEARCH] * 5), most=2).searches == 2


def test_those_of_an_answer_that_is_no_stream() -> None:
    run = begun()
    native.head(run.exchange, JSON)
    run.feed(json_bytes(response("completed", output=[SEARCH, MESSAGE], usage=USAGE)))
    run.handle(native.end())
    assert run.leave().searches == 1
