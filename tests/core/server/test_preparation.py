"""Lanes of preparation: what waits for what, and what is refused at once."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import CancelledError
from itertools import pairwise
from math import inf
from threading import Event

import pytest

from sidecar.responses.errors import ApiError
from sidecar.server.preparation import LANES, LaneSize, Preparation, preparation_threads

SIZES = (LaneSize(10, threads=1, places=3), LaneSize(inf, threads=1, places=2))
SMALL, LARGE = 10, 11


@pytest.fixture
def gate() -> Iterator[Event]:
    """Jobs that wait for it hold their threads; it opens at the end of a test."""
    gate = Event()
    yield gate
    gate.set()


@pytest.fixture
def lanes(gate: Event) -> Iterator[Preparation]:
    with preparation_threads(SIZES) as lanes:
        yield lanes
        gate.set()


def begin(lanes: Preparation, body_bytes: int, gate: Event) -> "asyncio.Task[str]":
    def job() -> str:
        assert gate.wait(60)
        return "done"

    return asyncio.create_task(lanes.run(body_bytes, job))


async def test_a_small_request_does_not_wait_for_large_ones(lanes: Preparation, gate: Event) -> None:
    large = [begin(lanes, LARGE, gate) for _ in range(2)]
    assert await lanes.run(SMALL, lambda: "small") == "small"
    assert not any(task.done() for task in large)
    gate.set()
    assert await asyncio.gather(*large) == ["done", "done"]


async def test_one_more_than_there_are_places_is_refused_at_once(lanes: Preparation, gate: Event) -> None:
    waiting = [begin(lanes, LARGE, gate) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refusal:
        await lanes.run(LARGE, lambda: "third")
    assert (refusal.value.code, refusal.value.status) == ("capacity_unavailable", 503)
    assert await lanes.run(SMALL, lambda: "small") == "small"
    gate.set()
    await asyncio.gather(*waiting)
    assert await lanes.run(LARGE, lambda: "later") == "later"


async def test_a_request_whose_client_leaves_gives_its_place_to_another(lanes: Preparation, gate: Event) -> None:
    running, waiting = (begin(lanes, LARGE, gate) for _ in range(2))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises((asyncio.CancelledError, CancelledError)):
        await waiting
    another = begin(lanes, LARGE, gate)
    await asyncio.sleep(0)
    assert not another.done()
    gate.set()
    assert (await running, await another) == ("done", "done")


async def test_a_running_request_keeps_its_place_when_its_client_leaves(lanes: Preparation, gate: Event) -> None:
    begun = Event()

    def job() -> None:
        begun.set()
        gate.wait(60)

    running = asyncio.create_task(lanes.run(LARGE, job))
    await asyncio.to_thread(begun.wait, 60)
    running.cancel()
    waiting = begin(lanes, LARGE, gate)
    await asyncio.sleep(0)
    with pytest.raises(ApiError):
        await lanes.run(LARGE, lambda: "third")
    gate.set()
    assert await waiting == "done"


async def test_a_fault_of_the_job_is_the_caller_s(lanes: Preparation) -> None:
    def job() -> None:
        raise ApiError("invalid_request", "bad")

    for _ in range(5):
        with pytest.raises(ApiError, match="bad"):
            await lanes.run(SMALL, job)


def test_the_lanes_of_a_worker_take_every_size_in_order() -> None:
    assert all(smaller.most_bytes < larger.most_bytes for smaller, larger in pairwise(LANES))
    assert LANES[-1].most_bytes == inf
