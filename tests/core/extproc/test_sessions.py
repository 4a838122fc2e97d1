"""The registry: sessions begin with what is in force, time passes for all, and a drain waits for what comes last."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import ref

import pytest

from sidecar.exchange.asks import Ask, LastAsk
from sidecar.exchange.plan import Prepare
from sidecar.extproc.session import Session
from sidecar.extproc.sessions import SURFACE_METADATA, WIRE_METADATA, Sessions
from sidecar.responses.errors import ApiError
from sidecar.surfaces import SURFACES
from tests.core import kit
from tests.core.extproc.test_session import BODY, Clock, Envoy, request_body, request_head
from tests.core.extproc.toy_asks import Reserve, Settle

NODE_BY_TUNNEL = {SURFACE_METADATA: "node", WIRE_METADATA: "tunnel"}


class Node:
    """A registry whose last ask waits for ``release``."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.settled: list[str] = []
        self.clock = Clock()
        table: dict[type[Ask[Any]] | type[LastAsk], Callable[[Any], Awaitable[object]]] = {
            Prepare: self._prepare,
            Reserve: self._reserve,
            Settle: self._settle,
        }
        self.sessions = Sessions(kit.catalog(), SURFACES, table, (), self.clock)

    async def _prepare(self, ask: Prepare) -> object:
        return ask.plan()

    async def _reserve(self, ask: Reserve) -> str:
        return "receipt"

    async def _settle(self, ask: Settle) -> None:
        await self.release.wait()
        self.settled.append(ask.outcome)

    async def call(self) -> tuple[Session, Envoy]:
        """A session that has called its upstream."""
        envoy = Envoy()
        session = self.sessions.open(envoy, NODE_BY_TUNNEL)
        session.receive(request_head().SerializeToString())
        session.receive(request_body(BODY).SerializeToString())
        await envoy.take(), await envoy.take()
        return session, envoy


@pytest.mark.parametrize("unknown", [{SURFACE_METADATA: "moon"}, {WIRE_METADATA: "string"}])
async def test_a_route_must_name_a_surface_and_a_wire_that_exist(unknown: dict[str, str]) -> None:
    with pytest.raises(KeyError):
        Node().sessions.open(Envoy(), NODE_BY_TUNNEL | unknown)


async def test_a_new_catalog_is_for_new_sessions() -> None:
    node = Node()
    before, _ = await node.call()
    node.sessions.catalog = kit.catalog(kit.model(name="digits"))
    after, envoy = Envoy(), Envoy()
    session = node.sessions.open(after, NODE_BY_TUNNEL)
    session.receive(request_head().SerializeToString())
    session.receive(request_body(BODY).SerializeToString())
    assert (await after.take()).immediate_response.status.code == 404
    assert envoy.rest() == []
    assert before.due_at == 110.0


async def test_the_sessions_that_run_are_aborted_together() -> None:
    node = Node()
    running = [await node.call() for _ in range(3)]
    assert node.sessions.active == 3
    node.sessions.abort_all(ApiError("node_unavailable", "restarting"))
    for session, envoy in running:
        assert (await envoy.take()).immediate_response.status.code == 503
        assert envoy.closed.is_set()
        node.sessions.close(session)
    assert node.sessions.active == 0


async def test_those_that_wait_for_a_model_are_aborted_and_no_others() -> None:
    node = Node()
    (waiting, silent), (answered, begun) = await node.call(), await node.call()
    answered.upstream(kit.text("a"))
    node.sessions.abort_waiting("digits", ApiError("infer_backend_unavailable", "hangs"))
    assert {exchange.done for exchange in node.sessions.exchanges()} == {False}
    node.sessions.abort_waiting("letters", ApiError("infer_backend_unavailable", "hangs"))
    assert (await silent.take()).immediate_response.status.code == 503
    assert waiting.exchange.done
    assert not answered.exchange.done
    assert not begun.closed.is_set()


async def test_a_drain_waits_for_what_comes_last() -> None:
    node = Node()
    session, _ = await node.call()
    node.sessions.close(session)
    assert node.sessions.active == 0
    waiting = asyncio.create_task(node.sessions.settled())
    await asyncio.sleep(0)
    assert not waiting.done()
    node.release.set()
    await asyncio.wait_for(waiting, 5)
    assert node.settled == ["client_gone"]


@pytest.mark.parametrize("wire", ["tunnel", "direct"])
async def test_a_session_that_is_over_is_freed_without_a_garbage_collection(wire: str) -> None:
    class Stream(Envoy):
        session: Session

    node, stream = Node(), Stream()
    node.release.set()
    stream.session = session = node.sessions.open(stream, NODE_BY_TUNNEL | {WIRE_METADATA: wire})
    watched = ref(session)
    gc.disable()
    try:
        session.receive(request_head().SerializeToString())
        session.receive(request_body(BODY).SerializeToString())
        await stream.take()
        node.sessions.close(session)
        del session, stream
        await node.sessions.settled()
        await asyncio.sleep(0)
        assert watched() is None
    finally:
        gc.enable()


async def test_time_passes_only_for_sessions_that_envoy_reads() -> None:
    node = Node()
    (slow, slow_envoy), (silent, _) = await node.call(), await node.call()
    slow_envoy.congested = True
    assert slow.due_at > 1e9 > silent.due_at
