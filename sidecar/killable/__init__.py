"""Functions whose cost a client can choose, run in processes that can be ended at any time.

A thread cannot be ended, and a function that holds the interpreter's lock stops the event loop beside it. Here each
call has a deadline and its process a limit of memory; a process that passes either is killed, and so is one whose
caller has left. Another takes its place.
"""

from __future__ import annotations

from sidecar.killable.errors import CrashedError, OverrunError
from sidecar.killable.pool import Pool

__all__ = ["CrashedError", "OverrunError", "Pool"]
