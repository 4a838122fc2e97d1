"""Where the heavy step before a call runs: parsing, rendering and tokenizing, off the event loop."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

# Preparing this much text takes some tens of milliseconds.
_LONG_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Preparation:
    """Two executors: long requests have their own, so that short ones never queue behind them."""

    short: Executor
    long: Executor

    def executor(self, body_bytes: int) -> Executor:
        """The executor for a request whose body has this many bytes."""
        return self.long if body_bytes > _LONG_BYTES else self.short


@contextmanager
def preparation_threads() -> Iterator[Preparation]:
    """Threads for one worker, ended with the context."""
    with (
        ThreadPoolExecutor(max_workers=2, thread_name_prefix="prepare") as short,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="prepare-long") as long,
    ):
        yield Preparation(short, long)
