"""Lanes of preparation: what waits for what, and what is refused at once."""

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from math import inf
from threading import Event
from typing import Any

import pytest

from sidecar.extproc.driver import Done
from sidecar.responses.errors import ApiError
from sidecar.server.preparation import LANES, LaneElsewhere, LaneOnTheLoop, LaneSize, Preparation, in_threads

SIZES = (LaneSize(10, at_once=1, places=3), LaneSize(inf, at_once=1, places=2))
SMALL, LARGE = 10, 11

Lanes = Preparation[Callable[[], Any], Any]
"""Lanes whose jobs are functions to be called."""


@contextmanager
def preparation_threads(sizes: Sequence[LaneSize]) -> Iterator[Lanes]:
    with ThreadPoolExecutor(4) as executor:
        yield Preparation([LaneElsewhere(size, in_threads(executor, lambda job: job())) for size in sizes])


@pytest.fixture
def gate() -> Iterator[Event]:
    """Jobs that wait for it hold their threads; it opens at the end of a test."""
    gate = Event()
    yield gate
    gate.set()


@pytest.fixture
def lanes(gate: Event) -> Iterator[Lanes]:
    with preparation_threads(SIZES) as lanes:
        yield lanes
        gate.set()


async def run(lanes: Lanes, job: Callable[[], Any], body_bytes: int, client: str) -> Any:
    performing = lanes.run(job, body_bytes, client)
    return performing.result if isinstance(performing, Done) else await performing


def begin(lanes: Lanes, body_bytes: int, gate: Event, client: str = "a client") -> "asyncio.Task[str]":
    def job() -> str:
        assert gate.wait(60)
        return "done"

    return asyncio.create_task(run(lanes, job, body_bytes, client))


async def test_a_small_request_does_not_wait_for_large_ones(lanes: Lanes, gate: Event) -> None:
    large = [begin(lanes, LARGE, gate) for _ in range(2)]
    assert await run(lanes, lambda: "small", SMALL, "a client") == "small"
    assert not any(task.done() for task in large)
    gate.set()
    assert await asyncio.gather(*large) == ["done", "done"]


async def test_one_more_than_there_are_places_is_refused_at_once(lanes: Lanes, gate: Event) -> None:
    waiting = [begin(lanes, LARGE, gate) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refusal:
        await run(lanes, lambda: "third", LARGE, "a client")
    assert (refusal.value.code, refusal.value.status) == ("capacity_unavailable", 503)
    assert await run(lanes, lambda: "small", SMALL, "a client") == "small"
    gate.set()
    await asyncio.gather(*waiting)
    assert await run(lanes, lambda: "later", LARGE, "a client") == "later"


async def test_a_request_whose_client_leaves_gives_its_place_to_another(lanes: Lanes, gate: Event) -> None:
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


async def test_a_running_request_keeps_its_place_when_its_client_leaves(lanes: Lanes, gate: Event) -> None:
    begun = Event()

    def job() -> None:
        begun.set()
        gate.wait(60)

    running = asyncio.create_task(run(lanes, job, LARGE, "a client"))
    await asyncio.to_thread(begun.wait, 60)
    running.cancel()
    waiting = begin(lanes, LARGE, gate)
    await asyncio.sleep(0)
    with pytest.raises(ApiError):
        await run(lanes, lambda: "third", LARGE, "a client")
    gate.set()
    assert await waiting == "done"


async def test_a_fault_of_the_job_is_the_caller_s(lanes: Lanes) -> None:
    def job() -> None:
        raise ApiError("invalid_request", "bad")

    for _ in range(5):
        with pytest.raises(ApiError, match="bad"):
            await run(lanes, job, SMALL, "a client")


async def test_a_client_is_next_however_many_requests_of_another_wait(gate: Event) -> None:
    order: list[str] = []

    def job(name: str) -> None:
        assert gate.wait(60)
        order.append(name)

    with preparation_threads([LaneSize(inf, at_once=1, places=20)]) as one_lane:

        def begin(client: str, name: str) -> "asyncio.Task[None]":
            return asyncio.create_task(run(one_lane, lambda: job(name), SMALL, client))

        waiting = [begin("greedy", f"greedy {index}") for index in range(8)]
        await asyncio.sleep(0)
        waiting.append(begin("other", "other"))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*waiting)
    assert order[:3] == ["greedy 0", "other", "greedy 1"]
    assert order[2:] == [f"greedy {index}" for index in range(1, 8)]


async def test_in_a_full_lane_the_client_with_most_requests_gives_up_its_newest(gate: Event) -> None:
    with preparation_threads([LaneSize(inf, at_once=1, places=5)]) as lanes:
        greedy = [begin(lanes, SMALL, gate, "greedy") for _ in range(5)]
        await asyncio.sleep(0)
        others = [begin(lanes, SMALL, gate, "other") for _ in range(2)]
        refused = [*greedy[-2:], begin(lanes, SMALL, gate, "other"), begin(lanes, SMALL, gate, "greedy")]
        refusals = await asyncio.gather(*refused, return_exceptions=True)
        assert [getattr(refusal, "code", refusal) for refusal in refusals] == ["capacity_unavailable"] * 4
        gate.set()
        assert await asyncio.gather(*greedy[:3], *others) == ["done"] * 5


async def test_on_the_loop_a_job_is_done_at_once_and_the_others_in_turns_of_their_own() -> None:
    lanes: Lanes = Preparation([LaneOnTheLoop(LaneSize(inf, at_once=1, places=3), lambda job: job())])
    order: list[str] = []

    def job(name: str) -> Callable[[], None]:
        return lambda: order.append(name)

    async def count_turns() -> None:
        while len(order) < 20:
            order.append("turn")
            await asyncio.sleep(0)

    assert lanes.run(job("first"), SMALL, "greedy") == Done(None)
    turns = asyncio.create_task(count_turns())
    waiting = [asyncio.create_task(run(lanes, job(name), SMALL, "greedy")) for name in ("second", "third")]
    other = asyncio.create_task(run(lanes, job("other"), SMALL, "other"))
    refused = asyncio.create_task(run(lanes, job("refused"), SMALL, "greedy"))
    await asyncio.gather(*waiting, other, turns)
    done = [position for position, name in enumerate(order) if name != "turn"]
    assert [order[position] for position in done] == ["first", "second", "other", "third"]
    assert all("turn" in order[before:after] for before, after in pairwise(done))
    with pytest.raises(ApiError):
        await refused


async def test_on_the_loop_a_fault_of_the_job_is_the_caller_s_and_its_place_free_again() -> None:
    lanes: Lanes = Preparation([LaneOnTheLoop(LaneSize(inf, at_once=1, places=1), lambda job: job())])
    with pytest.raises(ZeroDivisionError):
        lanes.run(lambda: 1 / 0, SMALL, "a client")
    await asyncio.sleep(0)
    assert lanes.run(lambda: "done", SMALL, "a client") == Done("done")


def test_the_lanes_of_a_worker_take_every_size_in_order() -> None:
    assert all(smaller.most_bytes < larger.most_bytes for smaller, larger in pairwise(LANES))
    assert LANES[-1].most_bytes == inf


async def test_a_refusal_that_nobody_waits_for_is_no_fault(lanes: Lanes, gate: Event) -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))

    begun = Event()

    def refuse() -> str:
        begun.set()
        assert gate.wait(60)
        raise ApiError("invalid_request", "It is refused.")

    gone = asyncio.create_task(run(lanes, refuse, LARGE, "a client"))
    assert await asyncio.to_thread(begun.wait, 60)
    gone.cancel()
    await asyncio.wait([gone])
    gate.set()
    # Its place is free again once it is done.
    assert await run(lanes, lambda: "done", LARGE, "a client") == "done"
    del gone
    gc.collect()
    assert not faults
