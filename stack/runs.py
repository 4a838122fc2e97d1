"""Which processes belong to the stack that ``up`` started, also after a crash.

Every part carries the run's id in its environment and passes it on to what it starts itself. A process is ours when
``/proc`` shows that id, so a process id that the system gave to somebody else since is never signalled.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from stack.paths import RUN
from stack.sidecar import COMMAND
from stack.triton import SHARED_MEMORY_PREFIX

VARIABLE = "RESPONSES_STACK_RUN"
_FILE = RUN / "run.json"


@dataclass(frozen=True)
class Run:
    """One run of the stack. ``owner`` is the ``up`` process, ``owner_started`` its start time in ticks since boot."""

    id: str
    owner: int
    owner_started: int

    @classmethod
    def begin(cls) -> Run:
        """Note a new run of this process; from here on, what it starts carries the run's id."""
        run = cls(secrets.token_hex(8), os.getpid(), _started(os.getpid()) or 0)
        os.environ[VARIABLE] = run.id
        RUN.mkdir(parents=True, exist_ok=True)
        _FILE.write_text(json.dumps(asdict(run)))
        return run

    @classmethod
    def load(cls) -> Run | None:
        """The run that was noted last and not ended, if there is one."""
        try:
            return cls(**json.loads(_FILE.read_text()))
        except FileNotFoundError:
            return None

    def owner_runs(self) -> bool:
        """Whether the ``up`` process is still there; never so after ``up --detach``."""
        return _started(self.owner) == self.owner_started

    def alive(self) -> bool:
        """Whether anything of this run is left."""
        return self.owner_runs() or bool(self.processes())

    def processes(self) -> list[int]:
        """The process ids of this run's parts and all that they started."""
        mark = f"{VARIABLE}={self.id}".encode()
        return [pid for pid in _all_pids() if mark in _environment(pid) and _started(pid) is not None]

    def ask_owner_to_end(self, seconds: float = 60) -> None:
        """SIGTERM to the ``up`` process; returns when it has ended its parts, or after ``seconds``."""
        if self.owner_runs():
            _signal(self.owner, signal.SIGTERM)
            _wait_until(lambda: not self.owner_runs(), seconds)

    def end(self, grace: float = 15) -> None:
        """SIGTERM to the leading processes, after ``grace`` seconds SIGKILL to all that is left; forgets the run."""
        leading = list(filter(_leads_a_group, self.processes()))
        # While the sidecar drains, its streams still need Envoy and Triton.
        draining = list(filter(_is_sidecar, leading))
        for pid in draining:
            _signal(pid, signal.SIGTERM)
        _wait_until(lambda: not any(map(_started, draining)), grace)
        for pid in leading:
            _signal(pid, signal.SIGTERM)
        _wait_until(lambda: not self.processes(), grace)
        for pid in self.processes():
            _signal(pid, signal.SIGKILL)
        _wait_until(lambda: not self.processes(), grace)
        remove_unused_shared_memory()
        _FILE.unlink(missing_ok=True)


def remove_unused_shared_memory() -> None:
    """Remove the shared memory that a Triton of this project left behind when it was killed."""
    regions = set(Path("/dev/shm").glob(f"{SHARED_MEMORY_PREFIX}*"))
    in_use = {line.split()[-1] for pid in _all_pids() for line in _mappings(pid) if "/dev/shm/" in line}
    for region in regions:
        if str(region) not in in_use:
            region.unlink(missing_ok=True)


def _all_pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _mappings(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return []


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _started(pid: int) -> int | None:
    """When a process started, in ticks since boot; ``None`` where it has ended, reaped or not."""
    try:
        # The second field is the program's name in parentheses and may hold blanks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def _is_sidecar(pid: int) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return tuple(map(os.fsdecode, arguments[1 : 1 + len(COMMAND)])) == COMMAND


def _leads_a_group(pid: int) -> bool:
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
