"""Child processes: a command that ends by itself, and a part that runs in a session of its own until it is ended."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_ERROR_LINE = re.compile(r"ERROR:|npm (error|ERR!)|E:")
_MOST_ERRORS = 3


class StackError(Exception):
    """A part that cannot be installed or started; the message is one sentence for the user."""


def run(command: Sequence[str | Path], failure: str, directory: Path | None = None, user: str | None = None) -> str:
    """The output of a command that ends by itself, run in ``directory`` and by ``user`` or else as this process is.

    Raises:
        StackError: it failed; the message is ``failure`` and what the command says of the reason.
    """
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **_as_user(user),
    )
    if done.returncode:
        raise StackError(f"{failure}: {reason(done.stderr or done.stdout) or f'status {done.returncode}'}")
    return done.stdout


def reason(output: str) -> str:
    """Why a command failed, out of what it wrote: the lines that pip, npm or apt mark as errors, else the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR_LINE.match(line)]
    return " ".join(errors[:_MOST_ERRORS] or lines[-1:])


def _as_user(user: str | None) -> dict[str, Any]:
    """What makes a child another user's, with no group but that user's own."""
    return {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


class Process:
    """A running part. It leads a process group of its own, so that ending it ends its children too."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        log: Path,
        env: Mapping[str, str] | None = None,
        directory: Path | None = None,
        user: str | None = None,
    ) -> None:
        """``env`` is added to the environment; ``directory`` is where the part runs, or else the current one.

        ``user`` is who runs it, or else this process's user.
        """
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                argv,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                **_as_user(user),
            )

    @property
    def pid(self) -> int:
        """The process id, which is also its group's."""
        return self._popen.pid

    def running(self) -> bool:
        """Whether the leading process is alive."""
        return self._popen.poll() is None

    def wait_until(self, ready: Callable[[], bool], seconds: float, interval: float = 0.05) -> None:
        """Poll ``ready`` until it holds.

        Raises:
            StackError: the process ended first or ``seconds`` passed; the message quotes the end of its log.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running():
                raise StackError(f"{self.name} ended with status {self._popen.returncode}: {self.log_tail()}")
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} was not ready after {seconds:.0f} s: {self.log_tail()}")
            time.sleep(interval)

    def log_tail(self, lines: int = 5) -> str:
        """The last lines of the log, for error messages."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, grace: float = 10.0, ask: signal.Signals = signal.SIGTERM) -> None:
        """The signal ``ask``, then SIGKILL to the group after ``grace`` seconds; returns when it has ended."""
        if self.running():
            self._popen.send_signal(ask)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(grace)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the whole group; returns when the leading process has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()
