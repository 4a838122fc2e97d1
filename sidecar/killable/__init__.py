"""Functions whose cost a client can choose, run in processes that can be ended at any time.

A thread cannot be ended, and a function that holds the interpreter's lock stops the event loop beside it. Here each
call has a limit of processor time and its process one of memory; a process that passes either is killed, and so is one
whose caller has left. Another takes its place. The processes give way to event loops, so what they may take is counted
in their own processor time: how long they wait for a processor is not the caller's doing.
"""

from __future__ import annotations

from sidecar.killable.errors import CrashedError, OverrunError
from sidecar.killable.pool import Pool

__all__ = ["CrashedError", "OverrunError", "Pool"]
