"""Every attack, on the real parts with honest clients beside it, and a stop in its middle."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager

import pytest

from sidecar.server.fleet import STOP_MARGIN_SECONDS
from stack.local import LocalStack
from tests.e2e.client import eventually, script
from tests.hostile.attacks import ATTACKS, BROKEN_OFF, CUT
from tests.hostile.honest import Waits, answers, honest_clients, p99, peak, served, under_attack
from tests.hostile.stacks import DRAIN, besieged

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]
"""A stack takes a while to start."""

SECONDS = 1.2
QUIET_SECONDS = 2.0
MIB = 2**20
MEMORY = 1000 * MIB
"""What a worker may take, its decoding processes aside."""
PROSE = script("ok") | {"instructions": "The quick brown fox jumps over the lazy dog. " * 6500}
"""An honest request of 300 KB."""
STOPPED_AT_ONCE = 3


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with besieged(tmp_path_factory.mktemp("besieged")) as stack:
        yield stack


@pytest.fixture(scope="module")
def quiet(stack: LocalStack) -> Waits:
    """What honest clients meet when nobody attacks."""

    async def measure() -> Waits:
        async with honest_clients(stack) as waits:
            await asyncio.sleep(QUIET_SECONDS)
        return waits

    return asyncio.run(measure())


@asynccontextmanager
async def listener(seen: list[str]) -> AsyncIterator[str]:
    """A server on the loopback address that notes whoever connects; its URL."""

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(str(writer.get_extra_info("peername")))
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/schema.json"


@pytest.mark.parametrize("name", ATTACKS)
async def test_honest_clients_are_served_beside_an_attack(stack: LocalStack, quiet: Waits, name: str) -> None:
    workers = stack.sidecar.worker_pids()
    connections: list[str] = []
    async with (
        listener(connections) as remote,
        under_attack(stack, [name], SECONDS, remote) as attackers,
        honest_clients(stack, PROSE) as waits,
    ):
        answered = await answers(attackers)
    assert not waits.failures
    assert p99(waits.gaps) <= max(5 * p99(quiet.gaps), 1.0)
    assert p99(waits.short) <= max(5 * p99(quiet.short), 3.0)
    assert not connections
    assert stack.sidecar.worker_pids() == workers
    assert peak(workers) < MEMORY
    assert answered[name]
    assert answered[name].keys() <= ATTACKS[name].answers


async def test_honest_clients_are_served_beside_all_attacks_at_once(stack: LocalStack) -> None:
    workers = stack.sidecar.worker_pids()
    async with under_attack(stack, list(ATTACKS), SECONDS) as attackers, honest_clients(stack) as waits:
        answered = await answers(attackers)
    assert not waits.failures
    assert stack.sidecar.worker_pids() == workers
    assert peak(workers) < MEMORY
    for name, counts in answered.items():
        # An answer of megabytes has been seen to end early, with an error event; why is not known.
        assert counts.keys() <= ATTACKS[name].answers | {CUT, BROKEN_OFF}


@pytest.fixture(scope="module")
def nodes(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LocalStack]]:
    """The stack, and further ones in front of its Triton: a stop is mostly waiting, so that several take turns well."""
    assert stack.triton is not None
    address = f"127.0.0.1:{stack.triton.grpc_port}"
    with ExitStack() as running:
        others = [besieged(tmp_path_factory.mktemp("another"), address) for _ in range(STOPPED_AT_ONCE - 1)]
        yield [stack, *(running.enter_context(other) for other in others)]


@pytest.mark.parametrize("first", range(0, len(ATTACKS), STOPPED_AT_ONCE))
async def test_a_sidecar_that_is_stopped_under_any_attack_is_down_in_time(nodes: list[LocalStack], first: int) -> None:
    names = list(ATTACKS)[first : first + STOPPED_AT_ONCE]
    took = await asyncio.gather(*(stop_under_attack(*pair) for pair in zip(nodes, names, strict=False)))
    assert {name: time for name, time in zip(names, took, strict=True) if time >= DRAIN + STOP_MARGIN_SECONDS} == {}


async def stop_under_attack(node: LocalStack, name: str) -> float:
    """How many seconds the sidecar of ``node`` takes to stop in the middle of an attack; it is started again."""
    async with under_attack(node, [name], 60):
        await eventually(lambda: node.envoy.stats("http.ingress")["http.ingress.downstream_rq_active"] >= 1)
        stopped = time.monotonic()
        os.kill(node.sidecar.process.pid, signal.SIGTERM)
        await eventually(lambda: not node.sidecar.process.running(), 60)
        took = time.monotonic() - stopped
    await asyncio.to_thread(node.start_sidecar)
    await served(node)
    return took
