"""The process of a pool: takes a call from its standard input, answers on its standard output, and so on to the end.

A call is a pickled function with its arguments, an answer a pickled pair: whether the function returned, and what it
returned or raised. Before the first call comes what sets the process up, and is answered likewise. This file is run by
its path, so that nothing is imported before the parent's search path is known, and nothing that the functions do not
need; it imports nothing but the standard library's.
"""

from __future__ import annotations

import errno
import os
import pickle
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

CALL = struct.Struct(">Qd")
"""Stands before a call: its length in bytes, and the seconds of processor time that it may take."""

ANSWER = struct.Struct(">Q")
"""Stands before an answer: its length in bytes."""

OUT_OF_MEMORY = 86
"""The exit status of a process that has reached its limit of memory."""

OUT_OF_TIME = signal.SIGPROF
"""The signal that ends a process which has had its processor time."""

PATIENCE = 8
"""A call may last so many times as long as the processor time it may take, since processors may be short."""

# Whoever waits for an answer ends the process in time; it ends itself where nobody is left to do so.
_GRACE_SECONDS = 1.0
# Below the event loops, which must not wait for a processor because of what is done here.
_NICENESS = 10
_AUTOGROUP = Path("/proc/self/autogroup")
# The system lets ordinary users change one autogroup in a tenth of a second; so many start at a time.
_CHANGES = 32
_BETWEEN_CHANGES_SECONDS = 0.1


def main() -> None:
    """Serve until standard input ends."""
    # A terminal's Ctrl-C and a service manager's stop are for the parent, which ends its processes when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    calls, answers = _take_pipes()
    give_way(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    work: Callable[[bytes], object] = _set_up
    while head := calls.read(CALL.size):
        length, seconds = CALL.unpack(head)
        answer = _perform(work, calls.read(length), seconds)
        work = _call
        try:
            answers.write(ANSWER.pack(len(answer)))
            answers.write(answer)
            answers.flush()
        except BrokenPipeError:
            return


def give_way(niceness: int) -> None:
    """Let this process, which leads a session, and those that it starts have less of the processors than others.

    Where the kernel shares processors among sessions first (sched(7), autogroups), a process's niceness counts only
    within its session. So the session, which has an autogroup of its own, is made as nice as the process.
    """
    os.nice(niceness)
    for _ in range(_CHANGES):
        try:
            _AUTOGROUP.write_text(str(niceness))
        except OSError as error:
            if error.errno == errno.EAGAIN:
                time.sleep(_BETWEEN_CHANGES_SECONDS)
                continue
        return


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes, out of reach of the functions: for them there is no input, and what they print goes to the log."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return calls, answers


def _perform(work: Callable[[bytes], object], data: bytes, seconds: float) -> bytes:
    # Nobody handles the signals of either timer, so that the system ends the process.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE + _GRACE_SECONDS)
    try:
        return pickle.dumps((True, work(data)), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except Exception as error:
        return _raised(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _set_up(data: bytes) -> None:
    """Prepare, then allow so many bytes of address space more than the process has."""
    path, memory, pickled = pickle.loads(data)
    sys.path[:] = path
    prepare: Callable[[], object] | None = pickle.loads(pickled)
    if prepare is not None:
        prepare()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _call(data: bytes) -> object:
    function, arguments = pickle.loads(data)
    return function(*arguments)


def _raised(error: Exception) -> bytes:
    """The answer that ``error`` was raised; one that cannot be pickled is told by its name."""
    try:
        answer = pickle.dumps((False, error))
        pickle.loads(answer)
    except Exception:
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__} in a process of a pool")))
    return answer


if __name__ == "__main__":
    main()
