"""Processor time from /proc (proc(5)): exact nanoseconds of the scheduler, not ticks of 10 ms."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")


def family(pids: Iterable[int]) -> set[int]:
    """The processes and all their descendants that live now."""
    found: set[int] = set()
    to_visit = list(pids)
    while to_visit:
        pid = to_visit.pop()
        if pid not in found:
            found.add(pid)
            for task in _tasks(pid):
                to_visit += map(int, _read(task / "children").split())
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time used so far by all threads of the processes; one that has ended counts nothing."""
    nanoseconds = (int((_read(task / "schedstat") or "0").split()[0]) for pid in pids for task in _tasks(pid))
    return sum(nanoseconds) / 1e9


def machine_seconds() -> float:
    """User and system time used so far by everything on the machine, in seconds over all its processors."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, _read(_PROC / "stat").split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _tasks(pid: int) -> list[Path]:
    try:
        return list((_PROC / str(pid) / "task").iterdir())
    except FileNotFoundError:
        return []


def _read(path: Path) -> str:
    # A thread may end between its listing and its reading.
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
