"""How the sidecar starts: the store's schema is brought up to date, then the supervisor runs the workers.

A process of its own sees to the schema and ends, so that the supervisor, which stays, does not load what that needs.
A store that does not answer keeps no node from starting: its workers say what they can do without, and the schema is
seen to when it answers.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from sidecar.config.models import Config
from sidecar.server.fleet import REFUSED
from sidecar.server.supervisor import supervise

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 5.0

_log = logging.getLogger(__name__)


class StoreRefused(Exception):
    """The configuration or the schema of the store cannot be used; the message says why."""


async def serve(config: Config, config_path: Path) -> int:
    """Serve until SIGTERM or SIGINT; the exit status of :func:`supervise`, or ``REFUSED`` by the store."""
    # Until there is something that could be loaded again.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if not config.accounts:
        return await supervise(config, config_path)
    try:
        up_to_date = await bring_up_to_date(config_path)
    except StoreRefused as error:
        print(error, file=sys.stderr)
        return REFUSED
    trying = None if up_to_date else asyncio.create_task(keep_trying(config_path))
    status = await supervise(config, config_path)
    if trying is not None:
        trying.cancel()
    return status


async def bring_up_to_date(config_path: Path) -> bool:
    """Try once; whether it is done.

    Raises:
        StoreRefused: it cannot be used until somebody changes something.
    """
    arguments = ("-m", "sidecar", "store", "migrate", "--config", str(config_path))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
    )
    _, told = await process.communicate()
    words = told.decode(errors="replace").strip()
    if process.returncode == REFUSED:
        raise StoreRefused(words)
    if process.returncode != 0:
        _log.error("%s", words)
    return process.returncode == 0


async def keep_trying(config_path: Path) -> None:
    """Try until it is done; what somebody else's release has done meanwhile is told in the log, and left to them."""
    delay = _FIRST_DELAY_SECONDS
    try:
        while not await bring_up_to_date(config_path):
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY_SECONDS)
    except StoreRefused as error:
        _log.critical("%s", error)
    else:
        _log.info("the store is up to date")
