"""How a worker ends: it is stopped, or another of a newer configuration has taken its place."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from math import ceil
from typing import NamedTuple

from sidecar.extproc.sessions import Sessions
from sidecar.extproc.transport import Serving
from sidecar.responses.errors import ApiError
from sidecar.server.fleet import RETIRE_SIGNAL

# Envoy checks health every second and waits a second for the answer; a single NOT_SERVING counts. After this it sends
# nothing new.
_HEALTH_NOTICE_SECONDS = 2.5
# Kept at the end of a drain, so that streams still running end with an error event instead of being cut.
_LAST_WORDS_SECONDS = 2.0
_LAST_WRITES_SECONDS = 0.5
# Envoy closes a connection when it has no stream on it; others need not.
_IDLE_SECONDS = 30.0
# All that a stop may take on top of the drain; a little less than the supervisor's patience.
_LONGEST_END_SECONDS = 8.0

_log = logging.getLogger(__name__)


class Ends(NamedTuple):
    """What ends a worker."""

    stop: asyncio.Event
    retired: asyncio.Event

    async def first(self) -> asyncio.Event:
        """Wait for one of them; a stop where both have come."""
        waiting = [asyncio.create_task(event.wait()) for event in self]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        return self.stop if self.stop.is_set() else self.retired


def ends_of_a_worker() -> Ends:
    """SIGTERM and the end of standard input, when the supervisor has died, are a stop; another signal retires."""
    loop = asyncio.get_running_loop()
    stop, retired = asyncio.Event(), asyncio.Event()
    loop.add_signal_handler(RETIRE_SIGNAL, retired.set)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # A terminal sends Ctrl-C to the whole group; the supervisor decides then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop.add_reader(sys.stdin.fileno(), _at_end_of_input(loop, stop.set))
    return Ends(stop, retired)


def _at_end_of_input(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> Callable[[], None]:
    def read() -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            loop.remove_reader(sys.stdin.fileno())
            callback()

    return read


async def drain(service: Serving, sessions: Sessions, seconds: float) -> None:
    """Take no new requests, let the running ones finish, and end the rest with an error at the deadline."""
    _log.info("draining %d sessions for at most %g s", sessions.active, seconds)
    await service.refuse()
    await asyncio.sleep(_HEALTH_NOTICE_SECONDS)
    if not await sessions.idle(seconds):
        sessions.abort_all(ApiError("node_unavailable", "The node is restarting; try again shortly."))
        await sessions.idle(_LAST_WORDS_SECONDS)


async def retire(service: Serving, sessions: Sessions, stop: asyncio.Event) -> None:
    """Serve the sessions under way to their ends, unless ``stop`` comes before; another takes the new ones."""
    _log.info("another configuration is in force; %d sessions go on with the one before", sessions.active)
    leaving, stopping = asyncio.create_task(service.retire()), asyncio.create_task(stop.wait())
    left = False
    while not left:
        done, _ = await asyncio.wait({leaving, stopping}, timeout=_IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        left = bool(done) or not sessions.active
    for task in (leaving, stopping):
        task.cancel()


async def close(service: Serving, sessions: Sessions) -> None:
    """End all streams that there still are."""
    await service.close(_LAST_WRITES_SECONDS)
    sessions.close_all()


def end_within(drain_seconds: float) -> None:
    """End the process some seconds after a drain, whatever hangs: nobody handles this signal, so the system does it."""
    signal.alarm(ceil(drain_seconds + _LONGEST_END_SECONDS))
