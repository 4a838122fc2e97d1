"""Who waits for what: in line, for a bounded time, in bounded places, and nobody in another organization's way."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from sidecar.admission.entries import Refused
from sidecar.admission.standing import UNLIMITED
from sidecar.admission.waiting_room import WaitingRoom

LATER = Refused("concurrency_limited", "later", 1_000_000, UNLIMITED)
NEVER = Refused("quota_exceeded", "never", None, UNLIMITED)


class Rooms:
    """So many places for each organization; whoever is admitted has a name."""

    def __init__(self, seconds: float = 30.0, places: int = 100) -> None:
        self.room = WaitingRoom[str](seconds, places)
        self.free = Counter[str]()
        self.tries = Counter[str]()
        self.admitted: list[str] = []

    def ask(self, organization: str, name: str = "one") -> asyncio.Task[str | Refused]:
        async def attempt() -> str | Refused:
            await asyncio.sleep(0)
            self.tries[name] += 1
            if not self.free[organization]:
                return LATER
            self.free[organization] -= 1
            self.admitted.append(name)
            return name

        return asyncio.create_task(self.room.admit((organization, "m"), attempt))

    def give(self, organization: str, places: int = 1) -> None:
        self.free[organization] += places
        self.room.nudge(organization)


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_without_a_time_to_wait_nobody_waits() -> None:
    rooms = Rooms(seconds=0)
    assert await rooms.ask("a") is LATER
    assert rooms.tries["one"] == 1


async def test_what_waiting_does_not_help_is_refused_at_once() -> None:
    async def attempt() -> str | Refused:
        return NEVER

    assert await WaitingRoom[str](30.0).admit(("a", "m"), attempt) is NEVER


async def test_the_first_in_line_is_the_first_admitted_whoever_comes_meanwhile() -> None:
    rooms = Rooms()
    tasks = [rooms.ask("a", name) for name in ("first", "second", "third")]
    await turns()
    rooms.free["a"] = 1
    late = rooms.ask("a", "late")
    await turns()
    assert rooms.tries["late"] == 0
    rooms.give("a", 3)
    assert await asyncio.gather(*tasks, late) == ["first", "second", "third", "late"]
    assert rooms.admitted == ["first", "second", "third", "late"]


async def test_only_the_first_in_line_tries() -> None:
    rooms = Rooms()
    tasks = [rooms.ask("a", name) for name in ("first", "second")]
    await turns()
    before = rooms.tries["second"]
    for _ in range(5):
        rooms.room.nudge("a")
        await turns()
    assert rooms.tries["first"] > 5
    assert rooms.tries["second"] == before
    rooms.give("a", 2)
    await asyncio.gather(*tasks)


async def test_one_organization_does_not_wait_for_another() -> None:
    rooms = Rooms()
    crowd = [rooms.ask("a", f"a{number}") for number in range(50)]
    other = rooms.ask("b", "b")
    await turns()
    rooms.give("b")
    assert await other == "b"
    for task in crowd:
        task.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)


async def test_who_leaves_gives_the_place_back() -> None:
    rooms = Rooms()
    tasks = [rooms.ask("a", name) for name in ("first", "second")]
    await turns()
    tasks[0].cancel()
    await turns()
    rooms.give("a")
    assert await tasks[1] == "second"
    assert rooms.admitted == ["second"]


async def test_nobody_waits_longer_than_the_time() -> None:
    rooms = Rooms(seconds=0.05)
    assert await asyncio.gather(*(rooms.ask("a") for _ in range(3))) == [LATER] * 3


async def test_a_full_room_takes_no_more_of_who_fills_it_and_makes_room_for_others() -> None:
    rooms = Rooms(places=4)
    crowd = [rooms.ask("a", f"a{number}") for number in range(4)]
    await turns()
    assert await rooms.ask("a", "one more") is LATER
    other = rooms.ask("b", "b")
    assert await crowd[-1] is LATER
    rooms.give("b")
    assert await other == "b"
    rooms.give("a", 3)
    assert await asyncio.gather(*crowd[:3]) == ["a0", "a1", "a2"]


@pytest.mark.parametrize("fault", [RuntimeError("boom"), asyncio.CancelledError()])
async def test_an_attempt_that_fails_leaves_the_line(fault: BaseException) -> None:
    rooms = Rooms()
    tries = 0

    async def attempt() -> str | Refused:
        nonlocal tries
        tries += 1
        if tries > 1:
            raise fault
        return LATER

    failing = asyncio.create_task(rooms.room.admit(("a", "m"), attempt))
    await turns()
    waiting = rooms.ask("a", "next")
    rooms.room.nudge("a")
    with pytest.raises(type(fault)):
        await failing
    rooms.give("a")
    assert await waiting == "next"
