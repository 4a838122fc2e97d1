"""The driver: every ask can be given up, aborted, overdue and failed, and what comes last is carried through."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest

from sidecar.exchange.asks import Ask, LastAsk
from sidecar.exchange.catalog import ServedModel
from sidecar.exchange.commands import CallUpstream, Command, Finish, Output
from sidecar.exchange.events import Abort, ClientGone, Event, Tick
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.phases import Calling, Ended, Preparing
from sidecar.exchange.plan import Prepare
from sidecar.extproc.driver import Driver, Observer
from sidecar.images.image import Image
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.surfaces import SURFACES
from tests.core import kit
from tests.core.extproc.toy_asks import Reserve, Settle

ASKS: list[type[Ask[Any]]] = [Prepare, FetchImages, Reserve]
RESTARTING = ApiError("node_unavailable", "restarting")


class Clock:
    """Time that stands still."""

    def monotonic(self) -> float:
        return 100.0

    def unix(self) -> float:
        return 1_800_000_000.0


class Watcher:
    """An observer that keeps what it sees."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[str]]] = []

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        self.seen.append((type(event).__name__, [type(command).__name__ for command in commands]))


class Run:
    """A driver whose performers do their work at once, but for the one of the ask ``held``: that waits for ``release``.

    It then fails with ``failure``, where one is set.
    """

    def __init__(
        self,
        held: type[Ask[Any] | LastAsk] | None = None,
        failure: Exception | None = None,
        model: ServedModel | None = None,
    ) -> None:
        self.begun, self.given_up, self.release = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.outputs: list[Output] = []
        self.settled: list[Settle] = []
        self.watcher = Watcher()
        self._held, self._failure = held, failure
        self.leaves = False
        table: dict[type[Ask[Any]] | type[LastAsk], Callable[[Any], Awaitable[object]]] = {
            Prepare: self._performer(Prepare, lambda ask: ask.plan()),
            FetchImages: self._performer(FetchImages, lambda ask: ask.body([Image("image/png", b"", 1, 1)])),
            Reserve: self._performer(Reserve, self._reserve),
            Settle: self._performer(Settle, self.settled.append),
        }
        self.observers: list[Observer] = [self.watcher]
        exchange = Exchange(SURFACES["node"], kit.catalog(model or kit.image_model()), table, entropy=bytes(18))
        self.driver = Driver(exchange, table, self.observers, Clock(), self.outputs.extend)
        self.exchange = exchange

    def _reserve(self, ask: Reserve) -> str:
        if self.leaves:
            # Before the answer is taken.
            asyncio.get_running_loop().call_soon(self._leave)
        return f"receipt for {ask.tokens}"

    def _leave(self) -> None:
        self.handle(ClientGone())
        self.driver.begin_last()

    def _performer(self, kind: type, work: Callable[[Any], object]) -> Callable[[Any], Awaitable[object]]:
        async def perform(ask: object) -> object:
            if kind is self._held:
                self.begun.set()
                try:
                    await self.release.wait()
                except asyncio.CancelledError:
                    self.given_up.set()
                    raise
                if self._failure is not None:
                    raise self._failure
            return work(ask)

        return perform

    async def begin(self) -> None:
        """Let a request with an image come, as far as the held ask."""
        self.handle(kit.image_request("https://example.com/cat.png"))
        await asyncio.wait_for(self.begun.wait(), 5)

    def handle(self, event: Event) -> None:
        self.outputs += self.driver.handle(event)

    async def until(self, phase: type) -> None:
        for _ in range(100):
            if self.exchange.phase is phase:
                return
            await asyncio.sleep(0)
        raise AssertionError(f"the exchange is {self.exchange.phase.__name__}, not {phase.__name__}")


async def test_asks_are_made_in_the_order_of_the_table_and_answered_before_the_call() -> None:
    run = Run()
    run.handle(kit.image_request("https://example.com/cat.png"))
    await run.until(Calling)
    assert [commands for event, commands in run.watcher.seen] == [
        ["Prepare"],
        ["FetchImages"],
        ["Reserve"],
        ["CallUpstream"],
    ]
    (call,) = run.outputs
    assert isinstance(call, CallUpstream)


@pytest.mark.parametrize("kind", ASKS)
async def test_an_ask_is_given_up_when_the_client_leaves(kind: type[Ask[Any]]) -> None:
    run = Run(kind)
    await run.begin()
    run.handle(ClientGone())
    await asyncio.wait_for(run.given_up.wait(), 5)
    assert (run.exchange.phase, run.exchange.report.outcome, run.outputs) == (Ended, "client_gone", [])


@pytest.mark.parametrize("kind", ASKS)
async def test_an_answer_that_comes_when_the_client_has_left_changes_nothing(kind: type[Ask[Any]]) -> None:
    run = Run(kind)
    await run.begin()
    # Both happen before the event loop has run anything: the performer is done, and the client has left.
    run.release.set()
    run.handle(ClientGone())
    await asyncio.sleep(0.01)
    assert (run.exchange.phase, run.exchange.report.outcome, run.outputs) == (Ended, "client_gone", [])


async def test_what_was_done_as_the_client_left_is_undone() -> None:
    run = Run(Prepare)
    run.leaves = True
    await run.begin()
    run.release.set()
    await run.until(Ended)
    assert not run.driver.is_settled
    await asyncio.wait_for(run.driver.settled(), 5)
    assert run.settled == [Settle("receipt for 5", "client_gone", 0)]
    assert (run.driver.is_settled, run.outputs) == (True, [])


@pytest.mark.parametrize("kind", ASKS)
async def test_an_abort_does_not_wait_for_an_ask(kind: type[Ask[Any]]) -> None:
    run = Run(kind)
    await run.begin()
    run.handle(Abort(RESTARTING))
    await asyncio.wait_for(run.given_up.wait(), 5)
    assert kit.reply(run.outputs).status == 503


@pytest.mark.parametrize("kind", ASKS)
async def test_an_ask_that_takes_too_long_ends_the_exchange(kind: type[Ask[Any]]) -> None:
    run = Run(kind)
    await run.begin()
    assert run.exchange.due_at == 100.0 + kind.seconds
    run.handle(Tick(run.exchange.due_at - 0.1))
    assert run.exchange.phase is Preparing
    run.handle(Tick(run.exchange.due_at))
    await asyncio.wait_for(run.given_up.wait(), 5)
    reply = kit.reply(run.outputs)
    assert (reply.status, reply.outcome) == (503, "capacity_unavailable")


@pytest.mark.parametrize("kind", ASKS)
async def test_an_ask_that_is_refused_is_a_plain_error(kind: type[Ask[Any]]) -> None:
    run = Run(kind, ApiError("egress_denied", "no"))
    await run.begin()
    run.release.set()
    await run.until(Ended)
    assert kit.reply(run.outputs).status == 403


@pytest.mark.parametrize("kind", ASKS)
async def test_an_ask_that_fails_is_an_internal_error(kind: type[Ask[Any]]) -> None:
    run = Run(kind, RuntimeError("a secret prompt"))
    await run.begin()
    run.release.set()
    await run.until(Ended)
    reply = kit.reply(run.outputs)
    assert reply.status == 500
    assert b"secret" not in reply.body


class Headers(dict[str, str]):
    """Headers that can be watched."""


async def test_a_refused_request_is_let_go_without_a_garbage_collection() -> None:
    run = Run()
    request = replace(kit.image_request("https://example.com/cat.png"), body=b"{")
    headers = Headers(request.headers)
    watched = ref(headers)
    gc.disable()
    try:
        run.handle(replace(request, headers=headers))
        await run.until(Ended)
        del headers
        await asyncio.sleep(0)
        assert watched() is None
    finally:
        gc.enable()


async def test_what_comes_last_is_done_when_the_answer_is_whole() -> None:
    run = Run()
    run.handle(kit.image_request("https://example.com/cat.png"))
    await run.until(Calling)
    run.handle(kit.broken_end())
    await asyncio.sleep(0)
    assert (run.settled, run.driver.is_settled) == ([], False)
    run.driver.begin_last()
    await run.driver.settled()
    assert isinstance(run.outputs[-1], Reply)
    assert run.settled == [Settle("receipt for 5", "infer_backend_unavailable", 0)]


async def test_what_comes_last_is_done_although_the_client_has_gone() -> None:
    run = Run(Settle)
    run.handle(kit.image_request("https://example.com/cat.png"))
    await run.until(Calling)
    run.handle(ClientGone())
    assert not run.driver.is_settled
    run.driver.begin_last()
    await asyncio.wait_for(run.begun.wait(), 5)
    run.handle(Abort(RESTARTING))
    run.release.set()
    await run.driver.settled()
    assert run.driver.is_settled
    assert run.settled == [Settle("receipt for 5", "client_gone", 0)]
    assert not run.given_up.is_set()


@pytest.mark.parametrize("kind", [Prepare, FetchImages, Reserve])
async def test_nothing_comes_last_where_nothing_was_reserved(kind: type[Ask[Any]]) -> None:
    run = Run(kind, ApiError("egress_denied", "no"))
    await run.begin()
    run.release.set()
    await run.until(Ended)
    assert run.driver.is_settled


async def test_a_fault_in_what_comes_last_harms_nobody() -> None:
    run = Run(Settle, RuntimeError("a fault"))
    run.handle(kit.image_request("https://example.com/cat.png"))
    await run.until(Calling)
    run.handle(ClientGone())
    run.driver.begin_last()
    run.release.set()
    await run.driver.settled()
    assert (run.settled, run.driver.is_settled) == ([], True)


async def test_ordinary_tokens_are_not_shown_to_observers() -> None:
    run = Run(model=kit.model())
    run.handle(kit.request(stream=True))
    await run.until(Calling)
    seen = len(run.watcher.seen)
    for _ in range(3):
        run.driver.upstream(kit.text("a"), 101.0)
    assert [event for event, _ in run.watcher.seen[seen:]] == ["UpstreamBytes"]
    run.handle(ClientGone())
    run.handle(ClientGone())
    assert [event for event, _ in run.watcher.seen[seen + 1 :]] == ["ClientGone"]
    assert run.exchange.report.timing.done_at == Clock().monotonic()
    assert not any(isinstance(output, Finish) for output in run.outputs)


class Broken:
    """An observer that always fails."""

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        raise RuntimeError("a fault of telemetry")


async def test_an_observer_that_fails_harms_nobody_and_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(model=kit.model())
    run.observers.insert(0, Broken())
    run.handle(kit.request())
    await run.until(Calling)
    run.handle(kit.broken_end())
    assert kit.reply(run.outputs[-1:]).status == 503
    assert [event for event, _ in run.watcher.seen] == ["RequestComplete", "Answered", "Answered", "UpstreamEnd"]
    assert [record.getMessage() for record in caplog.records] == [
        "the observer Broken failed; its further failures are not logged"
    ]


async def test_observers_see_the_end_once() -> None:
    run = Run(model=kit.model())
    run.handle(kit.request())
    await run.until(Calling)
    run.handle(kit.broken_end())
    seen = list(run.watcher.seen)
    run.handle(ClientGone())
    run.handle(Abort(RESTARTING))
    assert run.watcher.seen == seen
