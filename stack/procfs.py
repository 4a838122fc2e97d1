"""What ``/proc`` tells about processes. A process that has ended, or that cannot be looked at, tells nothing."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def all_pids() -> list[int]:
    """The ids of all processes."""
    return [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]


def environment(pid: int) -> list[bytes]:
    """The environment that a process was started with, as ``NAME=value``."""
    return _read(pid, "environ").split(b"\0")


def command_line(pid: int) -> list[str]:
    """The program and arguments of a process."""
    return [os.fsdecode(argument) for argument in _read(pid, "cmdline").split(b"\0")[:-1]]


def started(pid: int) -> int | None:
    """When a process started, in ticks since boot; ``None`` where it has ended, reaped or not."""
    fields = _status(pid)
    return None if not fields or fields[0] == b"Z" else int(fields[19])


def leads_a_group(pid: int) -> bool:
    """Whether the process group of a process is its own."""
    return _group(pid) == pid


def members(group: int) -> list[int]:
    """The processes of a process group."""
    return [pid for pid in all_pids() if _group(pid) == group]


def children(parent: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    return [pid for pid in all_pids() if _status(pid)[1:2] == [str(parent).encode()]]


def _status(pid: int) -> list[bytes]:
    """What ``stat`` tells, from the third field on; nothing of a process that has gone."""
    # The second field is the program's name in parentheses and may hold blanks.
    return _read(pid, "stat").rpartition(b")")[2].split()


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
