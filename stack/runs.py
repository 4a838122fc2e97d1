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

from stack import procfs, shared_memory
from stack.paths import RUN
from stack.sidecar import COMMAND

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
        run = cls(secrets.token_hex(8), os.getpid(), procfs.started(os.getpid()) or 0)
        os.environ[VARIABLE] = run.id
        RUN.mkdir(parents=True, exist_ok=True)
        _FILE.write_text(json.dumps(asdict(run)))
        return run

    @classmethod
    def load(cls) -> Run | None:
        """The run that was noted last and not ended, if there is one."""
        try:
            return cls(**json.loads(_FILE.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            # A full disk or a crash may have cut it short.
            return None

    def owner_runs(self) -> bool:
        """Whether the ``up`` process is still there; never so after ``up --detach``."""
        return procfs.started(self.owner) == self.owner_started

    def alive(self) -> bool:
        """Whether anything of this run is left."""
        return self.owner_runs() or bool(self.processes())

    def processes(self) -> list[int]:
        """The process ids of this run's parts and all that they started."""
        mark = f"{VARIABLE}={self.id}".encode()
        return [pid for pid in procfs.all_pids() if mark in procfs.environment(pid) and procfs.started(pid) is not None]

    def ask_owner_to_end(self, seconds: float = 60) -> None:
        """SIGTERM to the ``up`` process; returns when it has ended its parts, or after ``seconds``."""
        if self.owner_runs():
            _signal(self.owner, signal.SIGTERM)
            _wait_until(lambda: not self.owner_runs(), seconds)

    def end(self, grace: float = 15) -> None:
        """SIGTERM to the leading processes, after ``grace`` seconds SIGKILL to all that is left; forgets the run."""
        leading = list(filter(procfs.leads_a_group, self.processes()))
        # While the sidecar drains, its streams still need Envoy and Triton.
        draining = list(filter(_is_sidecar, leading))
        for pid in draining:
            _signal(pid, signal.SIGTERM)
        _wait_until(lambda: not any(map(procfs.started, draining)), grace)
        for pid in leading:
            _signal(pid, signal.SIGTERM)
        _wait_until(lambda: not self.processes(), grace)
        for pid in self.processes():
            _signal(pid, signal.SIGKILL)
        _wait_until(lambda: not self.processes(), grace)
        _FILE.unlink(missing_ok=True)
        shared_memory.remove_unused()


def _is_sidecar(pid: int) -> bool:
    return tuple(procfs.command_line(pid)[1 : 1 + len(COMMAND)]) == COMMAND


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
