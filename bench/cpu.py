"""Processor time from /proc (proc(5)): exact nanoseconds of the scheduler, not ticks of 10 ms."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


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


def system_seconds(pids: Iterable[int]) -> float:
    """The system's part of their processor time, as the kernel samples it."""
    # The command's name, in parentheses, may hold blanks; of what follows it, stime is the 13th field.
    fields = [_read(_PROC / str(pid) / "stat").rpartition(")")[2].split() for pid in pids]
    return sum(int(field[12]) for field in fields if field) / _TICKS_PER_SECOND


def context_switches(pids: Iterable[int]) -> int:
    """How often their threads have been put aside so far, by their own will or not."""
    lines = (line for pid in pids for task in _tasks(pid) for line in _read(task / "status").splitlines())
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


def machine_seconds() -> float:
    """User and system time used so far by everything on the machine, in seconds over all its processors."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, _read(_PROC / "stat").split()[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_SECOND


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
