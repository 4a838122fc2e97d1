"""``./dev down`` ends what ``./dev up`` started, with all its children, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stack import runs, shared_memory
from stack.runs import VARIABLE, Run

# Each process writes its id, then waits; the second program has a child that ignores SIGTERM.
PART = "import os, time; os.write(1, b'%d\\n' % os.getpid()); time.sleep(600)"
STUBBORN = f"import os, signal; os.fork() or signal.signal(signal.SIGTERM, signal.SIG_IGN); {PART}"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setattr(runs, "RUN", tmp_path)
    monkeypatch.setattr(runs, "_FILE", tmp_path / "run.json")
    monkeypatch.setenv(VARIABLE, "")
    run = Run.begin()
    yield run
    run.end()


def start(program: str, lines: int, run_id: str | None) -> tuple[subprocess.Popen[str], list[int]]:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if run_id is not None:
        environment[VARIABLE] = run_id
    part = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert part.stdout is not None
    return part, [int(part.stdout.readline()) for _ in range(lines)]


def test_a_run_ends_its_parts_and_their_children_only(run: Run) -> None:
    part, pids = start(STUBBORN, 2, run.id)
    other, _ = start(PART, 1, "another-run")
    stranger, _ = start(PART, 1, None)
    try:
        assert sorted(run.processes()) == sorted(pids)
        run.end(grace=0.2)
        assert part.wait() == -signal.SIGTERM
        assert run.processes() == []
        assert (other.poll(), stranger.poll()) == (None, None)
    finally:
        for process in (other, stranger):
            process.kill()
            process.wait()


def test_children_are_found_after_their_part_was_killed(run: Run) -> None:
    part, pids = start(STUBBORN, 2, run.id)
    part.kill()
    part.wait()
    assert run.processes() == [pid for pid in pids if pid != part.pid]
    run.end(grace=0.2)
    assert run.processes() == []


def test_a_run_is_remembered_until_it_ends(run: Run) -> None:
    assert Run.load() == run
    run.end()
    assert Run.load() is None


def test_a_run_is_forgotten_although_shared_memory_cannot_be_removed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shm"
    shared.mkdir()
    # A directory is what nobody can unlink, root included.
    (shared / f"{shared_memory.new_prefix()}region").mkdir()
    monkeypatch.setattr(shared_memory, "_DIRECTORY", shared)
    run.end()
    assert Run.load() is None


@pytest.mark.parametrize("content", ["", "{", '{"id": "x"}', "[]"])
def test_a_note_that_was_cut_short_is_none(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    assert Run.load() is None


def test_a_process_id_that_was_given_away_is_not_the_owner(run: Run) -> None:
    assert run.owner_runs()
    assert not replace(run, owner_started=run.owner_started + 1).owner_runs()
