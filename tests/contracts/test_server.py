"""tritonserver is installed or the reason is told in a sentence; a server that ends leaves nothing behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stack import triton
from stack.process import StackError
from stack.triton import Triton

SHARED_MEMORY = Path("/dev/shm")


def group_members(group: int) -> list[int]:
    """The living processes of a process group; zombies wait for a parent and are none."""
    members = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, _, process_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            # It ended in between.
            continue
        if int(process_group) == group and state not in "ZX":
            members.append(int(entry.name))
    return members


@pytest.mark.parametrize("end", [Triton.stop, Triton.kill])
@pytest.mark.parametrize("already_killed", [False, True])
def test_processes_and_shared_memory_go_with_the_server(
    start_scripted: Callable[[], Triton], end: Callable[[Triton], None], already_killed: bool
) -> None:
    before = set(SHARED_MEMORY.iterdir())
    server = start_scripted()
    # The server and the process of its one model.
    assert len(group_members(server.pid)) == 2
    own = {
        region
        for region in set(SHARED_MEMORY.iterdir()) - before
        if region.name.startswith(server.shared_memory_prefix)
    }
    assert own
    if already_killed:
        os.kill(server.pid, signal.SIGKILL)
    end(server)
    # A killed process takes a moment to go.
    while group_members(server.pid):
        time.sleep(0.01)
    assert not own & set(SHARED_MEMORY.iterdir())


def test_a_package_that_cannot_be_had_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"missing @ file://{tmp_path}/missing-1-py3-none-any.whl --hash=sha256:{'0' * 64}\n")
    monkeypatch.setattr(triton, "_LOCK", lock)
    with pytest.raises(StackError, match=r"^The Triton packages could not be installed: .*missing.*$"):
        triton.install(tmp_path / "venv", lambda step: None)


@pytest.mark.parametrize(
    ("apt_get", "reason"),
    [
        (None, "this system has no apt"),
        (
            'case "$*" in *download*) echo "E: Unable to locate package" >&2; exit 100; esac',
            "E: Unable to locate package",
        ),
    ],
)
def test_a_python_that_the_backend_does_not_know_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apt_get: str | None, reason: str
) -> None:
    monkeypatch.setattr(triton, "_PYTHONS", ((2, 7),))
    monkeypatch.setenv("PATH", str(tmp_path))
    if apt_get:
        (tmp_path / "apt-get").write_text(f"#!/bin/sh\n{apt_get}\n")
        (tmp_path / "apt-get").chmod(0o755)
    with pytest.raises(StackError, match=rf"needs Python 3\.11 or 3\.12; .*{reason}"):
        triton.install(tmp_path / "venv", lambda step: None)


def test_a_server_that_cannot_load_its_model_is_an_error_and_ends(
    tmp_path: Path, start_scripted: Callable[..., Triton]
) -> None:
    with pytest.raises(StackError, match="tritonserver ended"):
        start_scripted("no such model")
