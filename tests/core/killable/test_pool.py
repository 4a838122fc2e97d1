"""Processes that can be ended: calls are answered, bounded in time and memory, and leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sidecar.fairness import QueueFullError
from sidecar.killable import CrashedError, OverrunError, Pool
from tests.core.killable import functions

LONG = 60.0
SHORT = 0.2
MEMORY = 256 * 1024 * 1024


@asynccontextmanager
async def pool(size: int = 1, waiting: int = 8) -> AsyncIterator[Pool]:
    """A pool that leaves no process and no file descriptor behind."""
    # The loop opens some of its own with the first process.
    await (await asyncio.create_subprocess_exec("true")).wait()
    gc.collect()
    before = descriptors()
    async with Pool(size, memory=MEMORY, prepare=functions.prepare, waiting=waiting) as processes:
        yield processes
        pids = processes.pids
    assert not [pid for pid in pids if exists(pid)]
    assert descriptors() <= before


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def until(file: Path) -> None:
    while not file.exists():  # noqa: ASYNC240
        await asyncio.sleep(0.005)


async def test_a_call_is_answered_by_another_process() -> None:
    async with pool() as processes:
        assert await processes.run(functions.add, 1, 2, seconds=LONG) == 3
        assert {await processes.run(functions.pid, seconds=LONG)} == processes.pids
        assert os.getpid() not in processes.pids


async def test_large_values_go_both_ways() -> None:
    data = os.urandom(5_000_000)
    async with pool() as processes:
        assert await processes.run(functions.echo, data, seconds=LONG) == data


async def test_what_a_function_raises_is_raised_and_its_process_stays() -> None:
    async with pool() as processes:
        pids = processes.pids
        with pytest.raises(functions.Refusal, match=r"^because$"):
            await processes.run(functions.refuse, "because", seconds=LONG)
        with pytest.raises(RuntimeError, match=r"^Unpicklable in a process of a pool$"):
            await processes.run(functions.refuse_oddly, seconds=LONG)
        with pytest.raises((AttributeError, RuntimeError, TypeError)):
            await processes.run(functions.unpicklable, seconds=LONG)
        assert {await processes.run(functions.pid, seconds=LONG)} == pids


async def test_each_process_is_prepared_once() -> None:
    async with pool() as processes:
        assert await processes.run(functions.prepared, seconds=LONG) == [1]
        assert await processes.run(functions.prepared, seconds=LONG) == [1]


async def test_a_pool_that_cannot_be_prepared_is_not_entered() -> None:
    with pytest.raises(functions.Refusal, match="not today"):
        async with Pool(2, memory=MEMORY, prepare=functions.fail_to_prepare):
            pytest.fail("entered")


@pytest.mark.parametrize("function", [functions.spin, functions.hold_the_interpreter])
async def test_a_call_that_takes_too_long_is_ended_and_its_process_replaced(function: object) -> None:
    async with pool() as processes:
        (pid,) = processes.pids
        with pytest.raises(OverrunError, match=r"^the call (took|lasted) more than "):
            await processes.run(function, seconds=SHORT)  # type: ignore[arg-type]
        assert await processes.run(functions.pid, seconds=LONG) != pid
        assert not exists(pid)


async def test_a_call_that_waits_is_given_more_time_and_ended_at_last() -> None:
    async with pool() as processes:
        (pid,) = processes.pids
        await processes.run(time.sleep, 0.6, seconds=0.5)
        assert {pid} == processes.pids
        with pytest.raises(OverrunError, match=r"^the call lasted more than 1\.6 s$"):
            await processes.run(time.sleep, LONG, seconds=SHORT)
        assert await processes.run(functions.pid, seconds=LONG) != pid


async def test_a_call_that_takes_too_much_memory_is_ended_and_its_process_replaced() -> None:
    async with pool() as processes:
        (pid,) = processes.pids
        assert await processes.run(functions.allocate, MEMORY // 2, seconds=LONG) == MEMORY // 2
        with pytest.raises(OverrunError, match=r"^the call took more memory than it may$"):
            await processes.run(functions.allocate, 2 * MEMORY, seconds=LONG)
        assert await processes.run(functions.pid, seconds=LONG) != pid


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
async def test_a_crash_is_told_and_the_process_replaced(number: int) -> None:
    async with pool() as processes:
        with pytest.raises(CrashedError, match=f"status -{number:d}"):
            await processes.run(functions.die, int(number), seconds=LONG)
        with pytest.raises(CrashedError, match="status 3"):
            await processes.run(functions.leave, seconds=LONG)
        assert await processes.run(functions.add, 1, 2, seconds=LONG) == 3


async def test_a_process_that_dies_between_calls_is_replaced() -> None:
    async with pool() as processes:
        (pid,) = processes.pids
        (process,) = processes._processes
        os.kill(pid, signal.SIGKILL)
        # asyncio tells of a death some time after the process has gone.
        while process.is_ready:
            await asyncio.sleep(0.005)
        assert await processes.run(functions.pid, seconds=LONG) != pid


async def test_a_caller_that_leaves_ends_its_process(tmp_path: Path) -> None:
    async with pool() as processes:
        (pid,) = processes.pids
        call = asyncio.create_task(processes.run(functions.hold, str(tmp_path / "held"), seconds=LONG))
        await until(tmp_path / "held")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await processes.run(functions.pid, seconds=LONG) != pid
        assert not exists(pid)


async def test_a_caller_that_leaves_while_it_waits_ends_nothing(tmp_path: Path) -> None:
    async with pool() as processes:
        pids = processes.pids
        first = asyncio.create_task(processes.run(functions.hold, str(tmp_path / "held"), seconds=LONG))
        await until(tmp_path / "held")
        second = asyncio.create_task(processes.run(functions.add, 1, 2, seconds=LONG))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert processes.pids == pids
        first.cancel()
        assert await processes.run(functions.add, 3, 4, seconds=LONG) == 7


async def test_a_call_beyond_the_queue_is_refused(tmp_path: Path) -> None:
    async with pool(waiting=1) as processes:
        first = asyncio.create_task(processes.run(functions.hold, str(tmp_path / "held"), seconds=LONG))
        await until(tmp_path / "held")
        second = asyncio.create_task(processes.run(functions.add, 1, 2, seconds=LONG))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await processes.run(functions.add, 1, 2, seconds=LONG)
        first.cancel()
        assert await second == 3


async def test_owners_take_turns() -> None:
    async with pool() as processes:
        order: list[str] = []

        async def call(owner: str) -> None:
            await processes.run(functions.add, 1, 2, seconds=LONG, owner=owner)
            order.append(owner)

        async with asyncio.TaskGroup() as group:
            for owner in ["a", "a", "a", "a", "b"]:
                group.create_task(call(owner))
    assert order == ["a", "b", "a", "a", "a"]


async def test_calls_run_side_by_side(tmp_path: Path) -> None:
    async with pool(size=2) as processes:
        held = asyncio.create_task(processes.run(functions.hold, str(tmp_path / "held"), seconds=LONG))
        await until(tmp_path / "held")
        assert await processes.run(functions.add, 1, 2, seconds=LONG) == 3
        held.cancel()


async def test_an_end_does_not_wait_for_calls(tmp_path: Path) -> None:
    async with pool() as processes:
        running = asyncio.create_task(processes.run(functions.hold, str(tmp_path / "held"), seconds=LONG))
        await until(tmp_path / "held")
        waiting = asyncio.create_task(processes.run(functions.add, 1, 2, seconds=LONG))
        await asyncio.sleep(0)
    results = await asyncio.gather(running, waiting, return_exceptions=True)
    assert [type(result) for result in results] == [CrashedError, CrashedError]


async def test_a_function_has_no_input_and_spoils_no_answer_by_printing() -> None:
    async with pool() as processes:
        assert await processes.run(functions.read_and_print, seconds=LONG) == ""


async def test_a_process_gives_way_to_others_of_its_session_and_to_other_sessions() -> None:
    async with pool() as processes:
        niceness, autogroup = await processes.run(functions.niceness, seconds=LONG)
    assert niceness == os.nice(0) + 10
    assert not autogroup or autogroup.endswith(" nice 10")


async def test_signals_to_the_group_are_the_parents_business() -> None:
    async with pool() as processes:
        assert await processes.run(functions.ignored, seconds=LONG) == [True, True]
        (pid,) = processes.pids
        assert os.getsid(pid) != os.getsid(0)
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
        assert await processes.run(functions.pid, seconds=LONG) == pid
