"""Forks do what they are called for, are replaced, and end with the process that they serve."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sidecar.server.forks import Forks
from stack.paths import ROOT
from tests.core.server.forking import TASKS, work

PROGRAM = (sys.executable, "-m", "tests.core.server.forking")


@pytest.mark.parametrize("name", [name for name in TASKS if name != "busy"])
def test_forks(name: str) -> None:
    # Its output ends when all that hold it have ended, its forks among them.
    done = subprocess.run([*PROGRAM, name], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_forks_end_when_their_process_was_killed() -> None:
    with subprocess.Popen([*PROGRAM, "busy"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_only_a_process_of_one_thread_forks() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="one thread"):
            Forks(work, seconds=1.0)
    finally:
        release.set()
        thread.join()
