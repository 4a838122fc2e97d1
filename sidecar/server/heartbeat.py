"""A worker's heartbeat: its event loop writes a byte to a pipe now and then, and the supervisor hears when it stops.

A loop that is stuck, in a search that does not end or in native code that holds the interpreter, answers nobody; yet
its process lives, and its clients would wait.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

_BEAT = b"."
# So often a loop beats in the time after which its silence counts.
_BEATS = 5
_READ_BYTES = 4096


async def beat_forever(pipe: int, silence_seconds: float) -> None:
    """Write to ``pipe``, a descriptor that does not block, until cancelled."""
    while True:
        # Full, or the supervisor has died: neither is this worker's fault.
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(pipe, _BEAT)
        await asyncio.sleep(silence_seconds / _BEATS)


async def silence(beats: asyncio.StreamReader, silence_seconds: float) -> bool:
    """Listen until there is silence for so long (true), or the pipe's end (false).

    The listener itself may be held up, by a machine that was suspended: so half the time must pass in silence twice.
    """
    silent_halves = 0
    while silent_halves < 2:
        try:
            async with asyncio.timeout(silence_seconds / 2):
                if not await beats.read(_READ_BYTES):
                    return False
            silent_halves = 0
        except TimeoutError:
            silent_halves += 1
    return True
