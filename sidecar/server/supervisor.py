"""The supervisor: keeps the configured number of worker processes running and passes a stop on to them."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from sidecar.config.models import Config

_FIRST_DELAY_SECONDS = 0.1
_LONGEST_DELAY_SECONDS = 5.0
# A worker that lived this long was well; its next restart is immediate again.
_HEALTHY_SECONDS = 10.0
# On top of the drain: the notice to Envoy and the last words.
_STOP_MARGIN_SECONDS = 10.0

_log = logging.getLogger(__name__)


async def supervise(config: Config, config_path: Path) -> None:
    """Run the workers until SIGTERM or SIGINT, then let them drain; a second signal ends them at once."""
    loop = asyncio.get_running_loop()
    keepers = [asyncio.create_task(_keep(config, config_path, index)) for index in range(config.workers)]

    def stop() -> None:
        for keeper in keepers:
            keeper.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await asyncio.gather(*keepers, return_exceptions=True)


async def _keep(config: Config, config_path: Path, index: int) -> None:
    """Run the worker ``index``, again and again, until cancelled."""
    delay = _FIRST_DELAY_SECONDS
    while True:
        started = time.monotonic()
        worker = await _start(config_path, index)
        try:
            status = await worker.wait()
        except asyncio.CancelledError:
            await _stop(worker, config.drain + _STOP_MARGIN_SECONDS)
            raise
        delay = _FIRST_DELAY_SECONDS if time.monotonic() - started > _HEALTHY_SECONDS else delay * 2
        delay = min(delay, _LONGEST_DELAY_SECONDS)
        _log.error("worker %d ended with status %d; starting it again in %.1f s", index, status, delay)
        await asyncio.sleep(delay)


async def _start(config_path: Path, index: int) -> Process:
    # Workers read their standard input: when the supervisor dies, it ends, and so do they.
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sidecar", "worker", "--config", str(config_path), "--index", str(index), stdin=PIPE
    )


async def _stop(worker: Process, seconds: float) -> None:
    if worker.returncode is not None:
        return
    worker.terminate()
    try:
        await asyncio.wait_for(worker.wait(), seconds)
    except (asyncio.CancelledError, TimeoutError):
        worker.kill()
        await worker.wait()
