"""A fleet: no worker is lost without a word, and none is started for ever in vain."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.server import fleet as fleets
from sidecar.server.fleet import FAILED, READY, REFUSED, Fleet
from stack.paths import ROOT

REFUSAL = b"sidecar.yaml: models[0].tool_format: unknown\n"


class Worker:
    """A process that the test leads."""

    def __init__(self, *, obeys: bool = True) -> None:
        self.stdout = asyncio.StreamReader()
        self.returncode: int | None = None
        self.signals: list[str] = []
        self._obeys = obeys
        self._over = asyncio.Event()

    def tell(self, words: bytes) -> Worker:
        self.stdout.feed_data(words)
        return self

    def end(self, status: int) -> Worker:
        if self.returncode is None:
            self.returncode = status
            self.stdout.feed_eof()
            self._over.set()
        return self

    async def wait(self) -> int:
        await self._over.wait()
        assert self.returncode is not None
        return self.returncode

    def terminate(self) -> None:
        self.signals.append("TERM")
        if self._obeys:
            self.end(0)

    def send_signal(self, number: int) -> None:
        self.signals.append(signal.Signals(number).name)

    def kill(self) -> None:
        self.signals.append("KILL")
        self.end(-9)


class Starts:
    """Starts the workers that ``make`` gives, and keeps them."""

    def __init__(self, make: Callable[[int], Worker]) -> None:
        self.made: list[tuple[int, Worker]] = []
        self._make = make

    async def __call__(self, index: int) -> Any:
        worker = self._make(index)
        self.made.append((index, worker))
        return worker


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "_FIRST_DELAY_SECONDS", 0.0)


async def status_of(fleet: Fleet) -> int:
    return await asyncio.wait_for(fleet.run(), 10)


def well(_: int) -> Worker:
    return Worker().tell(READY)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def test_a_configuration_that_is_refused_ends_all_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    starts = Starts(lambda index: Worker().tell(REFUSAL).end(REFUSED))
    assert await status_of(Fleet(4, 10, 1000, starts)) == REFUSED
    assert len(starts.made) == 4
    assert capsys.readouterr().err == REFUSAL.decode()


async def test_workers_that_die_at_start_again_and_again_end_the_supervisor(caplog: pytest.LogCaptureFixture) -> None:
    starts = Starts(lambda index: Worker().end(1))
    assert await status_of(Fleet(2, 10, 1000, starts)) == FAILED
    assert len(starts.made) <= 11
    assert caplog.records[-1].levelno == logging.CRITICAL
    assert "ended at its start with status 1; no worker could be started" in caplog.text


async def test_processes_that_cannot_be_started_end_the_supervisor(caplog: pytest.LogCaptureFixture) -> None:
    async def start(index: int) -> Any:
        raise OSError("no memory")

    assert await status_of(Fleet(1, 10, 1000, start)) == FAILED
    assert "could not be started (no memory)" in caplog.text


@pytest.mark.parametrize("death", [lambda: Worker().end(1), lambda: Worker().tell(REFUSAL).end(REFUSED)])
async def test_a_worker_that_serves_is_not_ended_for_one_that_cannot(
    death: Callable[[], Worker], caplog: pytest.LogCaptureFixture
) -> None:
    starts = Starts(lambda index: well(index) if index == 0 else death())
    # The first is well before the second dies for the first time.
    fleet = Fleet(2, 10, 1000, starts)
    running = asyncio.create_task(fleet.run())
    await until(lambda: len(starts.made) > 40)
    assert not running.done()
    assert "worker 1" in caplog.text
    fleet.stop()
    assert await asyncio.wait_for(running, 10) == 0
    assert [worker.signals for index, worker in starts.made if index == 0] == [["TERM"]]


async def test_a_worker_that_ends_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    starts = Starts(well)
    fleet = Fleet(1, 10, 1000, starts)
    running = asyncio.create_task(fleet.run())
    for number in range(1, 20):
        await until(lambda count=number: len(starts.made) == count)  # type: ignore[misc]
        await asyncio.sleep(0)
        starts.made[-1][1].end(-9)
    await until(lambda: len(starts.made) == 20)
    assert "worker 0 ended with status -9" in caplog.text
    fleet.stop()
    assert await asyncio.wait_for(running, 10) == 0


async def test_a_worker_that_falls_silent_shows_its_stacks_and_is_replaced(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleets, "_STACKS_SECONDS", 0.0)
    starts = Starts(well)
    fleet = Fleet(1, 10, 0.01, starts)
    running = asyncio.create_task(fleet.run())
    await until(lambda: len(starts.made) == 2)
    fleet.stop()
    assert await asyncio.wait_for(running, 10) == 0
    assert starts.made[0][1].signals == ["SIGUSR1", "KILL"]
    assert "worker 0 has been ended because its loop was stuck" in caplog.text


# Its loop turns for a while, and then it does not.
STUCK = """
import asyncio, time
from sidecar.server.heartbeat import beat_forever
from sidecar.server.worker import tell_ready

def search_without_an_end(prompt):
    while True:
        time.sleep(0.01)

async def serve():
    beats = asyncio.create_task(beat_forever(tell_ready(), 0.1))
    await asyncio.sleep(0.1)
    search_without_an_end("a secret")

asyncio.run(serve())
"""


async def test_the_log_shows_where_a_loop_is_stuck_and_nothing_of_what_it_holds(tmp_path: Path) -> None:
    script, log = tmp_path / "stuck.py", tmp_path / "log"
    script.write_text(STUCK)
    started = []

    async def start(index: int) -> Any:
        with log.open("ab") as stderr:
            started.append(
                await asyncio.create_subprocess_exec(
                    sys.executable, script, stdout=asyncio.subprocess.PIPE, stderr=stderr, env={"PYTHONPATH": str(ROOT)}
                )
            )
        return started[-1]

    fleet = Fleet(1, 10, 1, start)
    running = asyncio.create_task(fleet.run())
    async with asyncio.timeout(60):
        while len(started) < 2:
            await asyncio.sleep(0.01)
    fleet.stop()
    fleet.stop()
    assert await asyncio.wait_for(running, 10) == 0
    assert started[0].returncode == -signal.SIGKILL
    assert "in search_without_an_end" in log.read_text()
    assert "secret" not in log.read_text()


async def test_a_stop_while_a_worker_starts_ends_it() -> None:
    starts = Starts(lambda index: Worker())
    fleet = Fleet(1, 10, 1000, starts)
    running = asyncio.create_task(fleet.run())
    await until(lambda: bool(starts.made))
    fleet.stop()
    assert await asyncio.wait_for(running, 10) == 0
    assert starts.made[0][1].signals == ["TERM"]


async def test_a_second_stop_ends_at_once_what_does_not_end_by_itself() -> None:
    starts = Starts(lambda index: Worker(obeys=False).tell(READY))
    fleet = Fleet(1, 1000, 1000, starts)
    running = asyncio.create_task(fleet.run())
    await until(lambda: bool(starts.made))
    fleet.stop()
    fleet.stop()
    assert await asyncio.wait_for(running, 10) == 0
    assert starts.made[0][1].signals == ["TERM", "KILL"]


async def test_what_does_not_end_in_time_is_killed() -> None:
    starts = Starts(lambda index: Worker(obeys=False).tell(READY))
    fleet = Fleet(1, 0, 1000, starts)
    running = asyncio.create_task(fleet.run())
    await until(lambda: bool(starts.made))
    fleet.stop()
    assert await asyncio.wait_for(running, 10) == 0
    assert starts.made[0][1].signals == ["TERM", "KILL"]


class Places:
    """Which workers have been told to take their places."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, Worker]] = []

    def __call__(self, index: int, worker: Any) -> None:
        self.taken.append((index, worker))


async def test_workers_on_trial_take_their_places_when_all_listen(caplog: pytest.LogCaptureFixture) -> None:
    starts, places = Starts(lambda index: well(index) if index == 0 else Worker()), Places()
    fleet = Fleet(2, 10, 1000, starts, listens=places, on_trial=True)
    running, complete = asyncio.create_task(fleet.run()), asyncio.create_task(fleet.complete())
    await until(lambda: len(starts.made) == 2)
    await asyncio.sleep(0)
    assert (complete.done(), places.taken) == (False, [])
    starts.made[1][1].tell(READY)
    await asyncio.wait_for(complete, 10)
    assert places.taken == []
    assert fleet.accept()
    assert places.taken == starts.made
    # From now on it is as any other.
    starts.made[0][1].end(1)
    await until(lambda: len(starts.made) == 3)
    await until(lambda: len(places.taken) == 3)
    assert places.taken[2] == (0, starts.made[2][1])
    fleet.stop()
    assert await asyncio.wait_for(running, 10) == 0


@pytest.mark.parametrize(
    ("death", "words"),
    [
        (lambda: Worker().tell(REFUSAL).end(REFUSED), REFUSAL.decode().strip()),
        (lambda: Worker().end(-9), "worker 1 ended at its start with status -9"),
        (lambda: Worker().tell(READY).end(1), "worker 1 ended with status 1"),
    ],
)
async def test_a_trial_fails_with_the_first_that_does_not_listen(
    death: Callable[[], Worker], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    starts, places = Starts(lambda index: well(index) if index == 0 else death()), Places()
    fleet = Fleet(2, 10, 1000, starts, listens=places, on_trial=True)
    await asyncio.wait_for(fleet.run(), 10)
    assert (fleet.refusal, fleet.refused) == (words, words in REFUSAL.decode())
    assert not fleet.accept()
    assert len(starts.made) == 2
    assert starts.made[0][1].signals == ["TERM"]
    assert (places.taken, capsys.readouterr().err) == ([], "")


async def test_who_retires_ends_by_itself_and_is_not_started_again() -> None:
    starts = Starts(lambda index: well(index) if index < 2 else Worker())
    fleet = Fleet(3, 10, 1000, starts)
    running = asyncio.create_task(fleet.run())
    await until(lambda: len(starts.made) == 3)
    await asyncio.sleep(0)
    fleet.retire()
    # The third does not listen yet.
    assert [worker.signals for _, worker in starts.made[:2]] == [["SIGUSR2"], ["SIGUSR2"]]
    assert starts.made[2][1].signals == ["SIGTERM"]
    starts.made[0][1].end(0)
    starts.made[2][1].end(0)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not running.done()
    # One that dies instead is not started again either.
    starts.made[1][1].end(-9)
    assert await asyncio.wait_for(running, 10) == 0
    assert len(starts.made) == 3


async def test_a_worker_that_comes_to_listen_when_its_fleet_has_retired_takes_nobodys_place() -> None:
    starts, places = Starts(lambda index: well(index) if index == 0 else Worker()), Places()
    fleet = Fleet(2, 10, 1000, starts, listens=places)
    running = asyncio.create_task(fleet.run())
    await until(lambda: len(places.taken) == 1)
    fleet.retire()
    # It was told to end before it listened, and hears that only now.
    starts.made[1][1].tell(READY)
    for _ in range(10):
        await asyncio.sleep(0)
    starts.made[0][1].end(0)
    starts.made[1][1].end(0)
    assert await asyncio.wait_for(running, 10) == 0
    assert places.taken == starts.made[:1]


async def test_who_retires_can_be_stopped() -> None:
    starts = Starts(well)
    fleet = Fleet(1, 10, 1000, starts)
    running = asyncio.create_task(fleet.run())
    await until(lambda: bool(starts.made))
    await asyncio.sleep(0)
    fleet.retire()
    fleet.stop()
    assert await asyncio.wait_for(running, 10) == 0
    assert starts.made[0][1].signals[-1] == "TERM"
