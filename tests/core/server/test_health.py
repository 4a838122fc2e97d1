"""A model's circuit: what opens it, what closes it, and when the model is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.backends.failure import BackendError
from sidecar.backends.triton import errors
from sidecar.exchange.check_guides import CheckGuides
from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.events import Event, Tick, UpstreamBytes
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.plan import Prepare
from sidecar.extproc.sessions import Sessions
from sidecar.responses.errors import ApiError
from sidecar.server import health
from sidecar.server.contracts import Contracts
from sidecar.server.health import Health
from sidecar.server.signs import Signs
from sidecar.surfaces import SURFACES
from tests.core import kit

PATIENCE = 40.0
"""A quarter of it is the canary's."""

UNREACHABLE = errors.classify_end(503, None)


class Node(Sessions):
    """One worker: its clock, its exchanges, and a Triton that answers canaries as ``canary`` says: ``None`` is well."""

    def __init__(self, directory: Path, index: int = 0) -> None:
        super().__init__(kit.catalog(kit.model(first_token_timeout=PATIENCE)), SURFACES, {}, ())
        self.now = 1000.0
        self.canary: BackendError | None = None
        self.hangs = asyncio.Event()
        self.hangs.set()
        self.asked = 0
        self.running: list[Exchange] = []
        self.contracts = Contracts("host:1")
        self.health = Health(Signs(directory, index, self.now), self.contracts, self._way, lambda: self.now)

    def exchanges(self) -> Iterator[Exchange]:
        return iter(self.running)

    def abort_waiting(self, model: str, error: ApiError) -> None:
        for exchange in self.running:
            exchange.report.outcome = error.code

    async def _way(self) -> str:
        return "host:1"

    async def answer(self) -> None:
        """What becomes of a canary."""
        self.asked += 1
        await self.hangs.wait()
        if self.canary is not None:
            raise self.canary

    async def look(self, seconds: float = 0.0) -> str | None:
        """Look twice, the second time at what became of a canary; the name of the outage."""
        self.now += seconds
        for _ in range(2):
            self.health.look(self)
            for _ in range(10):
                await asyncio.sleep(0)
        self.health.look(self)
        (model,) = self.catalog.triton_models()
        return None if model.outage is None else model.outage.name

    def call(self) -> Exchange:
        """A request that has called the model now, which is later than all that was before."""
        self.now += 0.001
        exchange = self._exchange()
        (call,) = kit.handle(exchange, kit.request(head_at=self.now))
        assert isinstance(call, CallUpstream)
        self.running.append(exchange)
        return exchange

    def refusal(self) -> str | None:
        """The code with which a request is refused before the model is called."""
        exchange = self._exchange()
        kit.handle(exchange, kit.request())
        return exchange.report.outcome if exchange.done else None

    def _exchange(self) -> Exchange:
        return Exchange(SURFACES["node"], self.catalog, (Prepare, CheckGuides, FetchImages), entropy=bytes(18))

    def happens(self, exchange: Exchange, event: Event) -> None:
        """An event, as the driver has it."""
        self.now += 0.001
        commands = exchange.handle(event)
        if exchange.done:
            self.running.remove(exchange)
            exchange.report.timing.done_at = self.now
        self.health.observe(exchange, event, commands)

    def answered(self, exchange: Exchange) -> None:
        """The model answers a request."""
        self.happens(exchange, UpstreamBytes(kit.text("a") + kit.final(), self.now))
        self.happens(exchange, kit.whole_end(self.now))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node(tmp_path)

    async def first_token(target: str, request: bytes, reader: object, seconds: float) -> None:
        assert (target, seconds) == ("host:1", PATIENCE / 4)
        await node.answer()

    monkeypatch.setattr(health, "first_token", first_token)
    return node


async def test_a_model_is_ready_once_a_canary_was_answered(node: Node) -> None:
    node.hangs.clear()
    beginning = asyncio.create_task(node.health.begin(node))
    assert await node.look() == "starting"
    assert node.refusal() == "infer_backend_unavailable"
    node.hangs.set()
    await asyncio.wait_for(beginning, 10)
    assert await node.look() is None
    assert node.asked == 1


async def test_a_model_that_cannot_be_reached_is_asked_until_it_answers(node: Node) -> None:
    node.canary = UNREACHABLE
    await asyncio.wait_for(node.health.begin(node), 10)
    assert await node.look() == "unreachable"
    for asked in (2, 3):
        assert await node.look(0.5) == "unreachable"
        assert await node.look(0.5) == "unreachable"
        assert node.asked == asked
    node.canary = None
    assert await node.look(1.0) is None


async def test_a_model_that_serves_is_sent_no_canary(node: Node) -> None:
    await node.look()
    slow = node.call()
    for _ in range(100):
        exchange = node.call()
        node.now += PATIENCE / 100
        node.answered(exchange)
        assert await node.look() is None
    # That one waited for too long tells of that one.
    node.happens(slow, Tick(node.now))
    assert slow.report.outcome == "infer_backend_unavailable"
    assert await node.look() is None
    assert node.asked == 1


async def test_what_is_heard_in_a_long_answer_counts(node: Node) -> None:
    await node.look()
    exchange = node.call()
    waiting = node.call()
    for _ in range(20):
        node.now += PATIENCE / 20
        exchange.upstream(kit.text("a"), node.now)
        assert await node.look() is None
    assert waiting in node.running
    assert node.asked == 1


@pytest.mark.parametrize("failure", ["unreachable", "failed"])
async def test_a_failure_has_the_model_asked_and_only_that_refuses_requests(node: Node, failure: str) -> None:
    await node.look()
    node.now += 10.0
    node.happens(node.call(), kit.broken_end(node.now, 503 if failure == "unreachable" else 200))
    assert await node.look() is None
    assert node.asked == 2
    node.canary = UNREACHABLE if failure == "unreachable" else errors.classify_message("CUDA error")
    node.happens(node.call(), kit.broken_end(node.now, 503))
    assert await node.look(5.0) is None
    assert node.asked == 3
    assert await node.look(1.0) == failure
    assert node.refusal() == "infer_backend_unavailable"
    node.canary = None
    assert await node.look(1.0) is None
    assert node.refusal() is None


async def test_a_full_queue_is_no_failure_of_the_model(node: Node) -> None:
    await node.look()
    node.now += 10.0
    node.happens(node.call(), UpstreamBytes(kit.failure("Exceeds maximum queue size"), node.now))
    assert await node.look() is None
    assert node.asked == 1


async def test_a_model_without_memory_is_refused_as_one_without_room(node: Node) -> None:
    node.canary = errors.classify_message("out of memory")
    assert await node.look() == "out_of_memory"
    assert node.refusal() == "capacity_unavailable"


async def test_one_answer_anywhere_outweighs_canaries_that_fail(node: Node) -> None:
    """Of two Tritons one has gone: what the other says is heard."""
    await node.look()
    node.canary = UNREACHABLE
    for _ in range(20):
        node.happens(node.call(), kit.broken_end(node.now, 503))
        assert await node.look(5.0) is None
        node.answered(node.call())
        assert await node.look(0.9) is None
    assert node.asked > 20


async def test_a_silent_model_is_asked_before_a_request_has_waited_for_as_long_as_it_may(node: Node) -> None:
    await node.look()
    waiting = node.call()
    assert await node.look(PATIENCE / 4 - 0.1) is None
    assert node.asked == 1
    node.hangs.clear()
    assert await node.look(0.2) is None
    assert node.asked == 2
    node.canary = errors.timeout()
    node.now += PATIENCE / 4
    node.hangs.set()
    assert await node.look() == "timeout"
    assert node.refusal() == "infer_backend_unavailable"
    # It may still be heard of.
    assert waiting.report.outcome == "client_gone"
    node.happens(waiting, UpstreamBytes(kit.text("a"), node.now + 1.0))
    assert await node.look(1.0) is None


async def test_with_the_first_that_has_waited_for_too_long_all_that_wait_end(node: Node) -> None:
    await node.look()
    node.canary = errors.timeout()
    node.hangs.clear()
    first = node.call()
    node.now += PATIENCE / 2
    second = node.call()
    node.now += PATIENCE / 2
    node.happens(first, Tick(node.now))
    assert await node.look() == "timeout"
    assert second.report.outcome == "infer_backend_unavailable"
    node.hangs.set()
    assert await node.look(1.0) == "timeout"
    node.canary = None
    assert await node.look(1.0) is None


async def test_what_triton_does_not_know_is_asked_too(node: Node) -> None:
    await node.look()
    node.canary = UNREACHABLE
    node.now += 10.0
    node.contracts.missing["letters"] = node.now
    assert await node.look() is None
    assert await node.look(1.0) == "unreachable"


async def test_other_tensors_are_looked_at(node: Node) -> None:
    node.canary = errors.classify_message("unexpected inference input 'a' for model 'm'")
    assert await node.look() == "other_tensors"
    assert node.contracts.doubted


async def test_a_model_that_takes_no_simple_request_is_left_to_requests(node: Node) -> None:
    node.catalog = kit.catalog(kit.model(first_token_timeout=PATIENCE, context_length=2))
    assert await node.look() is None
    assert node.asked == 0


async def test_a_model_without_a_contract_is_not_asked(node: Node) -> None:
    node.catalog = kit.catalog(kit.model(contract=None))
    await asyncio.wait_for(node.health.begin(node), 10)
    assert await node.look(5.0) == "starting"
    assert node.asked == 0


async def test_what_another_worker_has_found_out_counts(node: Node, tmp_path: Path) -> None:
    other = Node(tmp_path, 1)
    assert await node.look() is None
    other.now = node.now
    other.health.look(other)
    assert await other.look() is None
    assert other.asked == 0
    node.canary = UNREACHABLE
    node.happens(node.call(), kit.broken_end(node.now, 503))
    await node.look(6.0)
    assert await node.look(1.0) == "unreachable"
    other.now = node.now
    assert await other.look() == "unreachable"
