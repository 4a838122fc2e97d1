"""What a soak breaks, and how it is known to be well again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import httpx2

from stack.local import LocalStack
from stack.process import StackError
from tests.e2e.client import Client, eventually, script

_WELL_SECONDS = 120
_STARTS = 3
# As many in a row must be answered: by every worker.
_ANSWERS = 8


async def kill_worker(stack: LocalStack) -> None:
    """Always the same, so that the other's memory tells of all requests."""
    pids = await eventually(lambda: _all(stack), _WELL_SECONDS)
    os.kill(pids[1], signal.SIGKILL)
    await eventually(lambda: _other(stack, pids), _WELL_SECONDS)


def _all(stack: LocalStack) -> list[int]:
    """The workers, where all of them listen."""
    pids = stack.sidecar.worker_pids()
    return pids if len(pids) == stack.workers else []


def _other(stack: LocalStack, before: list[int]) -> bool:
    now = _all(stack)
    return bool(now) and now[1] != before[1]


async def kill_triton(stack: LocalStack) -> None:
    """It is started again at once; it may die of its start, and is started once more, as by a service manager."""
    assert stack.triton is not None
    await asyncio.to_thread(stack.triton.kill)
    for left in reversed(range(_STARTS)):
        try:
            await asyncio.to_thread(stack.start_triton)
            return
        except StackError:
            if not left:
                raise


async def kill_envoy(stack: LocalStack) -> None:
    """It is started again at once."""
    await asyncio.to_thread(stack.envoy.process.kill)
    await asyncio.to_thread(stack.start_envoy)


FAULTS: Mapping[str, Callable[[LocalStack], Awaitable[None]]] = {
    "worker killed": kill_worker,
    "Triton killed": kill_triton,
    "Envoy killed": kill_envoy,
}


@dataclass
class Windows:
    """When parts were not well, on the monotonic clock."""

    begun_at: list[float] = field(default_factory=list)
    ended_at: list[float] = field(default_factory=list)

    async def during(self, stack: LocalStack, fault: Callable[[LocalStack], Awaitable[None]]) -> None:
        """Break something, and wait until all is well."""
        self.begun_at.append(time.monotonic())
        await fault(stack)
        await well(stack)
        self.ended_at.append(time.monotonic())

    def met(self, begun_at: float, ended_at: float) -> bool:
        """Whether a request that began and ended then met something that was not well."""
        ends = [*self.ended_at, float("inf")]
        return any(begin < ended_at and begun_at < end for begin, end in zip(self.begun_at, ends, strict=False))


async def well(stack: LocalStack) -> None:
    """Wait until Envoy knows of all workers, and each of them answers for every model: each is found well by itself."""
    healthy = "cluster.sidecar.membership_healthy"
    await eventually(lambda: stack.envoy.stats(healthy).get(healthy) == stack.workers, _WELL_SECONDS)
    async with Client(stack) as client, asyncio.timeout(_WELL_SECONDS):
        while True:
            try:
                asked = [client.ask(script("ok", model=model.name)) for model in stack.models for _ in range(_ANSWERS)]
                answers = await asyncio.gather(*asked)
            except httpx2.TransportError:
                continue
            if {answer.status_code for answer in answers} == {200}:
                return
            await asyncio.sleep(0.1)
