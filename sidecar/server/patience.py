"""What is to be written when a request is over: tried until the store takes it, but not for ever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from sidecar.store import StoreUnavailable
from sidecar.stored.master_keys import KeyUnknown

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_LONGEST_SECONDS = 120.0

_log = logging.getLogger(__name__)


class Patience:
    """That of one worker."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """The worker stops: what the store does not take now is lost."""
        self._stopping.set()

    async def carry_through(self, write: Callable[[], Awaitable[object]], what: str) -> None:
        """Do ``write``, as soon as the store answers; for two minutes at most. ``what`` is lost then, by the log."""
        pause, until = _FIRST_PAUSE_SECONDS, asyncio.get_running_loop().time() + _LONGEST_SECONDS
        while True:
            try:
                await write()
            except (StoreUnavailable, KeyUnknown) as error:
                if self._stopping.is_set() or asyncio.get_running_loop().time() >= until:
                    _log.error("%s could not be stored: %s", what, error)
                    return
            else:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
