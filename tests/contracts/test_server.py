"""A server that ends leaves nothing behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from stack.triton import Triton

pytestmark = pytest.mark.contract

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
    own = {region for region in set(SHARED_MEMORY.iterdir()) - before if region.name.startswith(server.shared_memory)}
    assert own
    if already_killed:
        os.kill(server.pid, signal.SIGKILL)
    end(server)
    assert group_members(server.pid) == []
    assert not own & set(SHARED_MEMORY.iterdir())
