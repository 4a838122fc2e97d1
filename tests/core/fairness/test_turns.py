"""Turns: places go round, and none is lost whoever leaves when."""

from __future__ import annotations

import asyncio

import pytest

from sidecar.fairness import QueueFullError, Turns


async def started(turns: Turns[int], owner: str) -> asyncio.Task[int]:
    task = asyncio.create_task(turns.take(owner))
    await asyncio.sleep(0)
    return task


async def test_a_free_place_is_taken_at_once_and_one_given_back_goes_to_the_next() -> None:
    turns = Turns([1], waiting=2)
    assert await turns.take("a") == 1
    waiting = await started(turns, "a")
    other = await started(turns, "b")
    turns.give_back(1)
    assert await other == 1
    assert not waiting.done()
    turns.give_back(2)
    assert await waiting == 2


@pytest.mark.parametrize("has_turn", [False, True])
async def test_one_who_leaves_while_waiting_loses_no_place(has_turn: bool) -> None:
    turns = Turns([1], waiting=1)
    await turns.take("a")
    waiting = await started(turns, "a")
    if has_turn:
        turns.give_back(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    if not has_turn:
        turns.give_back(1)
    assert await turns.take("b") == 1


async def test_one_who_leaves_just_when_a_place_becomes_free_passes_it_on() -> None:
    turns = Turns([1], waiting=2)
    await turns.take("a")
    leaving, staying = await started(turns, "a"), await started(turns, "a")
    leaving.cancel()
    turns.give_back(1)
    assert await staying == 1


async def test_one_who_has_most_waiting_is_refused_for_one_who_has_none() -> None:
    turns = Turns([1], waiting=2)
    await turns.take("a")
    first, newest = await started(turns, "a"), await started(turns, "a")
    other = await started(turns, "b")
    with pytest.raises(QueueFullError):
        await newest
    turns.give_back(1)
    assert await other == 1
    turns.give_back(1)
    assert await first == 1


async def test_one_who_leaves_just_when_it_is_refused_has_left() -> None:
    turns = Turns([1], waiting=2)
    await turns.take("a")
    first, newest = await started(turns, "a"), await started(turns, "a")
    other = await started(turns, "b")
    newest.cancel()
    with pytest.raises(asyncio.CancelledError):
        await newest
    for task in (other, first):
        turns.give_back(1)
        assert await task == 1


async def test_all_who_wait_can_be_refused() -> None:
    turns: Turns[int] = Turns(waiting=2)
    waiting = [await started(turns, "a"), await started(turns, "b")]
    turns.refuse_all(KeyError("over"))
    assert [type(each) for each in await asyncio.gather(*waiting, return_exceptions=True)] == [KeyError, KeyError]
