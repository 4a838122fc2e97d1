"""Routes that rest, and what tries them again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.events import ClientGone, Event, Tick, UpstreamEnd
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.plan import Prepare
from sidecar.extproc.sessions import Sessions
from sidecar.server.resting import Resting
from sidecar.surfaces.bureau import BUREAU
from tests.core import kit
from tests.core.backends.native.streams import delta, opening, stream
from tests.core.exchange import native_kit as native

PATIENCE = 10.0
REFUSED = "infer_backend_unavailable"
FIRST, SECOND = "native.up0", "native.up1"


class Node(Sessions):
    """One worker, its clock, and the exchanges under way."""

    def __init__(self, routes: int = 1) -> None:
        super().__init__(kit.catalog(native.model(*[native.ALL] * routes)), {}, {}, ())
        self.now = 1000.0
        self.running: list[Exchange] = []
        self.resting = Resting(self, lambda: self.now)

    def exchanges(self) -> Iterator[Exchange]:
        return iter(self.running)

    def call(self) -> tuple[Exchange, str]:
        """A request, and the host that it calls, or the code with which it is refused."""
        self.now += 0.001
        exchange = Exchange(BUREAU, self.catalog, (Prepare,), entropy=bytes(18))
        (command,) = native.begin(exchange, native.request(stream=True, head_at=self.now))
        self.resting.observe(exchange, Tick(self.now), [command])
        if exchange.done:
            return exchange, exchange.report.outcome
        self.running.append(exchange)
        assert isinstance(command, CallUpstream)
        return exchange, command.host

    def happens(self, exchange: Exchange, event: Event) -> None:
        """An event, as the driver has it."""
        commands = exchange.handle(event)
        if exchange.done:
            self.running.remove(exchange)
        self.resting.observe(exchange, event, commands)

    def answered(self, exchange: Exchange) -> None:
        """The route serves a request."""
        native.head(exchange, native.EVENTS, at=self.now)
        exchange.upstream(stream("well"), self.now)
        self.happens(exchange, native.end(at=self.now))

    def unreachable(self) -> UpstreamEnd:
        """How a call ends whose upstream is not there."""
        return native.end(None, at=self.now)

    def hangs(self) -> None:
        """A request waits for as long as it may."""
        exchange, _ = self.call()
        self.now += PATIENCE
        self.happens(exchange, Tick(self.now))
        assert exchange.report.outcome == REFUSED

    def host(self) -> str:
        """Whom a request calls, whose client leaves then."""
        exchange, host = self.call()
        if not exchange.done:
            self.happens(exchange, ClientGone())
        return host


def test_a_route_that_hangs_rests_and_is_tried_by_one_request() -> None:
    node = Node()
    node.hangs()
    assert node.host() == REFUSED
    node.now += 4.0
    node.resting.look()
    assert node.host() == REFUSED
    node.now += 1.0
    node.resting.look()
    trial, host = node.call()
    assert host == FIRST
    assert node.host() == REFUSED
    node.answered(trial)
    assert [node.host(), node.host()] == [FIRST, FIRST]


def test_each_rest_is_longer() -> None:
    node = Node()
    node.hangs()
    for pause in (5.0, 10.0, 20.0, 40.0, 60.0, 60.0):
        node.now += pause - 0.5
        node.resting.look()
        assert node.host() == REFUSED
        node.now += 0.5
        node.resting.look()
        trial, host = node.call()
        assert host == FIRST
        node.happens(trial, node.unreachable())


def test_a_trial_whose_client_leaves_is_followed_by_another() -> None:
    node = Node()
    node.hangs()
    node.now += 5.0
    node.resting.look()
    assert node.host() == FIRST
    node.resting.look()
    assert node.host() == FIRST


def test_a_slow_answer_among_others_is_no_reason_to_rest() -> None:
    node = Node()
    slow, _ = node.call()
    node.now += PATIENCE / 2
    quick, _ = node.call()
    node.answered(quick)
    node.now += PATIENCE / 2
    node.happens(slow, Tick(node.now))
    assert slow.report.outcome == REFUSED
    assert node.host() == FIRST


def test_what_is_heard_in_a_long_answer_counts() -> None:
    node = Node()
    long, _ = node.call()
    slow, _ = node.call()
    node.now += PATIENCE / 2
    native.head(long, native.EVENTS, at=node.now)
    long.upstream(opening() + delta(2, "so"), node.now)
    node.resting.look()
    node.now += PATIENCE / 2
    node.happens(slow, Tick(node.now))
    assert node.host() == FIRST


def test_several_failures_in_a_row_make_it_rest() -> None:
    node = Node()
    for failures in (4, 4, 5):
        for _ in range(failures):
            exchange, host = node.call()
            assert host == FIRST
            node.happens(exchange, node.unreachable())
        if failures < 5:
            exchange, _ = node.call()
            node.answered(exchange)
    assert node.host() == REFUSED


@pytest.mark.parametrize("status", [400, 401, 429])
def test_a_route_that_refuses_serves(status: int) -> None:
    node = Node()
    for _ in range(10):
        exchange, host = node.call()
        assert host == FIRST
        native.head(exchange, native.JSON, status, at=node.now)
        exchange.upstream(b"{}", node.now)
        node.happens(exchange, native.end(status, at=node.now))


def test_another_route_is_taken_meanwhile() -> None:
    node = Node(routes=2)
    node.hangs()
    assert node.host() == SECOND
    node.now += 5.0
    node.resting.look()
    trial, host = node.call()
    assert host == FIRST
    assert node.host() == SECOND
    node.answered(trial)
    assert node.host() == FIRST


def test_a_route_that_others_follow_counts_its_failures() -> None:
    node = Node(routes=2)
    for _ in range(5):
        exchange, host = node.call()
        assert host == FIRST
        # The second route is called by then.
        native.head(exchange, native.JSON, 500, at=node.now)
        exchange.upstream(b"{}", node.now)
        node.happens(exchange, native.end(500, at=node.now))
        assert exchange in node.running
        node.answered(exchange)
    assert node.host() == SECOND
