"""The last hour and the last failures, over several workers and lives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sidecar.exchange.commands import CallUpstream, SendHead
from sidecar.exchange.events import ClientGone, UpstreamEnd
from sidecar.telemetry.recent.failures import Failure, Failures, read_failures
from sidecar.telemetry.recent.observer import NoteRecent
from sidecar.telemetry.recent.steps import STEP_SECONDS, STEPS, Count, Step, Steps, read_steps, together
from tests.core.kit import exchange, failure, final, handle, play, request, text, upstream

BEGIN = 1_800_000_000.0
"""The begin of a step."""


class Clock:
    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "recent"


def noted(number: int, **changed: Any) -> Failure:
    members: dict[str, Any] = {"surface": "node", "model": "m", "code": "internal", "backend": "", "seconds": 0.5}
    return Failure(**{"at": BEGIN + number, "request_id": f"r-{number}", **members, **changed})


def test_steps_of_all_workers_are_summed_and_a_successor_goes_on(directory: Path, clock: Clock) -> None:
    first, second = Steps(directory, 0, clock), Steps(directory, 1, clock)
    first.add(Count.REQUESTS)
    second.add(Count.REQUESTS, 2)
    Steps(directory, 0, clock).add(Count.REQUESTS, 4)
    steps = read_steps(directory, clock())
    assert len(steps) == STEPS + 1
    assert [step[Count.REQUESTS] for step in steps[-2:]] == [0, 7]


def test_what_was_an_hour_ago_is_forgotten(directory: Path, clock: Clock) -> None:
    steps = Steps(directory, 0, clock)
    steps.add(Count.FAILED)
    clock.now += STEPS * STEP_SECONDS
    assert read_steps(directory, clock())[0][Count.FAILED] == 1
    clock.now += STEP_SECONDS
    assert not any(step[Count.FAILED] for step in read_steps(directory, clock()))
    # The ring's place is taken again, without what stood there.
    clock.now = BEGIN + (STEPS + 2) * STEP_SECONDS
    steps.add(Count.REFUSED)
    (taken,) = (step for step in read_steps(directory, clock()) if step[Count.REFUSED])
    assert taken[Count.FAILED] == 0


@pytest.mark.parametrize("seconds", [0.0, 0.0005, 0.001, 0.0317, 0.5, 1.7, 60.0, 300.0])
def test_a_share_of_the_first_tokens_is_told_to_a_fourth(directory: Path, clock: Clock, seconds: float) -> None:
    steps = Steps(directory, 0, clock)
    for _ in range(3):
        steps.first_token(seconds)
    told = read_steps(directory, clock())[-1].first_token(0.95)
    assert told is not None
    assert told == pytest.approx(max(seconds, 0.001), rel=0.27)


def test_shares_of_first_tokens_are_of_all_of_them(directory: Path, clock: Clock) -> None:
    steps = Steps(directory, 0, clock)
    for seconds in [0.1] * 90 + [2.0] * 10:
        steps.first_token(seconds)
    clock.now += STEP_SECONDS
    for seconds in [0.1] * 100 + [10_000.0]:
        steps.first_token(seconds)
    before, now = read_steps(directory, clock())[-2:]
    half, most = before.first_token(0.5), before.first_token(0.95)
    assert half == pytest.approx(0.1, rel=0.27)
    assert most == pytest.approx(2, rel=0.27)
    assert now.first_token(0.95) == pytest.approx(0.1, rel=0.27)
    assert together([before, now]).first_token(0.5) == pytest.approx(0.1, rel=0.27)
    assert Step([0] * 64).first_token(0.5) is None


def test_a_file_of_another_layout_begins_anew(directory: Path, clock: Clock) -> None:
    Steps(directory, 0, clock).add(Count.REQUESTS)
    (file,) = directory.iterdir()
    file.write_bytes(b"another".ljust(file.stat().st_size, b"\1"))
    assert read_steps(directory, clock())[-1][Count.REQUESTS] == 0
    Steps(directory, 0, clock).add(Count.REQUESTS)
    assert read_steps(directory, clock())[-1][Count.REQUESTS] == 1


def test_files_take_their_room_in_advance_and_are_for_nobody_else(directory: Path, clock: Clock) -> None:
    NoteRecent(directory, 0, clock)
    for file in directory.iterdir():
        assert file.stat().st_blocks * 512 >= file.stat().st_size > 0
        assert file.stat().st_mode & 0o077 == 0
    assert directory.stat().st_mode & 0o077 == 0


def test_a_disk_without_room_is_told(directory: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="no space"):
        NoteRecent(directory, 0, clock)


def test_the_newest_failures_of_all_workers_come_first(directory: Path) -> None:
    workers = [Failures(directory, index) for index in range(2)]
    for number in range(200):
        workers[number % 2].note(noted(number))
    # A successor goes on behind the newest.
    Failures(directory, 0).note(noted(200))
    assert [failure.request_id for failure in read_failures(directory, 3)] == ["r-200", "r-199", "r-198"]
    assert len(read_failures(directory, 1000)) == 128


def test_what_clients_choose_is_cut_and_breaks_no_record(directory: Path) -> None:
    failures = Failures(directory, 0)
    failures.note(noted(0, request_id='"\n\U0001f600\x00' * 50, model="\x00" * 128))
    failures.note(noted(1))
    newest, oldest = read_failures(directory, 10)
    assert (newest.request_id, oldest.request_id) == ("r-1", ('"\n\U0001f600\x00' * 50)[:64])


def test_a_record_that_is_half_written_is_none(directory: Path) -> None:
    Failures(directory, 0).note(noted(0))
    (file,) = directory.iterdir()
    file.write_bytes(file.read_bytes().replace(b'"at"', b'"at'))
    assert read_failures(directory, 10) == []


def test_an_answer_is_noted_when_it_is_over(directory: Path, clock: Clock) -> None:
    recent = NoteRecent(directory, 0, clock)
    played, _ = play([text("abc"), text("de"), final()])
    recent.observe(played, UpstreamEnd(True, 200, None, 102.0), [CallUpstream("/", "", {}, b"")])
    step = read_steps(directory, clock())[-1]
    assert [step[count] for count in Count] == [1, 0, 0, 5, 5, 0]
    assert step.first_token(0.5) == pytest.approx(1, rel=0.27)
    assert read_failures(directory, 10) == []


def test_a_stream_and_its_tokens_are_noted_while_it_goes_on(directory: Path, clock: Clock) -> None:
    recent, streaming = NoteRecent(directory, 0, clock), exchange()
    event = request(stream=True)
    recent.observe(streaming, event, handle(streaming, event))
    for piece in ("abc", "de"):
        upstream(streaming, text(piece))
        recent.observe(streaming, event, [SendHead({})])
        clock.now += 0.5
        recent.look()
    step = read_steps(directory, clock())[-1]
    assert (step[Count.OUTPUT_TOKENS], step[Count.STREAM_MS], step[Count.REQUESTS]) == (5, 1000, 0)
    streaming.handle(ClientGone())
    recent.observe(streaming, ClientGone(), [])
    recent.look()
    step = read_steps(directory, clock())[-1]
    assert [step[count] for count in (Count.OUTPUT_TOKENS, Count.REQUESTS, Count.FAILED)] == [5, 1, 0]
    assert not any(vars(recent)[name] for name in ("_streams", "_tokens"))


def test_a_loop_that_was_stuck_counts_no_streams_for_that(directory: Path, clock: Clock) -> None:
    recent, streaming = NoteRecent(directory, 0, clock), exchange()
    recent.observe(streaming, request(stream=True), [SendHead({})])
    clock.now += 3600
    recent.look()
    assert read_steps(directory, clock())[-1][Count.STREAM_MS] == 5000
    clock.now -= 1800
    recent.look()
    assert read_steps(directory, clock())[-1][Count.STREAM_MS] == 0


def test_a_failure_is_noted_without_words(directory: Path, clock: Clock) -> None:
    recent = NoteRecent(directory, 0, clock)
    played, _ = play([failure("secret words")])
    played.report.request_id, played.report.surface = "r-1", "node"
    recent.observe(played, UpstreamEnd(True, 200, None, 102.0), [])
    step = read_steps(directory, clock())[-1]
    assert (step[Count.FAILED], step[Count.REFUSED]) == (1, 0)
    (noted,) = read_failures(directory, 10)
    assert (noted.request_id, noted.model, noted.code) == ("r-1", "letters", played.report.outcome)
    assert noted.backend
    assert b"secret" not in b"".join(file.read_bytes() for file in directory.iterdir())


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [("rate_limited", (1, 1, 0)), ("internal", (1, 0, 1)), ("client_gone", (1, 0, 0)), ("ok", (0, 0, 0))],
)
def test_what_counts_as_what(directory: Path, clock: Clock, outcome: str, counts: tuple[int, int, int]) -> None:
    recent, left = NoteRecent(directory, 0, clock), exchange()
    left.handle(ClientGone())
    left.report.outcome = outcome
    recent.observe(left, ClientGone(), [])
    step = read_steps(directory, clock())[-1]
    assert tuple(step[count] for count in (Count.REQUESTS, Count.REFUSED, Count.FAILED)) == counts
    assert len(read_failures(directory, 10)) == counts[1] + counts[2]
