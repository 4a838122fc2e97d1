"""What a worker's metrics tell of the moment, looked at now and then: queues, reservations, models, the loop itself."""

from __future__ import annotations

import asyncio
import logging
import os
from math import isinf
from pathlib import Path
from typing import Any

from sidecar.config.load import ConfigError
from sidecar.config.models import Config
from sidecar.extproc.sessions import Sessions
from sidecar.server.accounts import Accounts
from sidecar.server.preparation import LANES, LaneSize, Preparation
from sidecar.telemetry.metrics import table
from sidecar.telemetry.metrics.log_records import CountLogRecords
from sidecar.telemetry.metrics.metrics import Metrics, open_metrics
from sidecar.telemetry.recent.observer import NoteRecent

_PAUSE_SECONDS = 0.5

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def open_metrics_of(config: Config, place: int) -> Metrics:
    """The metrics of the worker in ``place``; warnings and errors in the log are counted from now on.

    Raises:
        ConfigError: there is no room for their files.
    """
    try:
        metrics = open_metrics(config.metrics, place)
    except OSError as error:
        raise ConfigError(f"sockets: {error}") from error
    logging.getLogger().addHandler(CountLogRecords(metrics))
    metrics.count(table.WORKER_STARTS)
    metrics.set(table.WORKERS, 1)
    return metrics


def note_recent_of(config: Config, place: int) -> NoteRecent:
    """The observer for what the worker in ``place`` does of late.

    Raises:
        ConfigError: there is no room for its files.
    """
    try:
        return NoteRecent(config.recent, place)
    except OSError as error:
        raise ConfigError(f"sockets: {error}") from error


def note_store(metrics: Metrics, access: str, outcome: str, seconds: float) -> None:
    """The store has answered, or not."""
    metrics.observe(table.STORE, seconds, access, outcome)


def lane_name(size: LaneSize) -> str:
    """What the metrics call a lane: the largest body that it takes."""
    return "larger" if isinf(size.most_bytes) else f"{size.most_bytes // 1024} KiB"


class Sampling:
    """Looks at the parts of one worker; ``accounts`` is ``None`` where there are none."""

    def __init__(
        self,
        metrics: Metrics,
        recent: NoteRecent,
        sessions: Sessions,
        preparation: Preparation[Any, Any],
        accounts: Accounts | None,
    ) -> None:
        self._metrics = metrics
        self._recent = recent
        self._sessions = sessions
        self._preparation = preparation
        self._accounts = accounts

    async def run_forever(self) -> None:
        """Look every half a second, until cancelled; how late that is tells how long the loop was busy."""
        loop = asyncio.get_running_loop()
        while True:
            self.look()
            due = loop.time() + _PAUSE_SECONDS
            await asyncio.sleep(_PAUSE_SECONDS)
            self._metrics.observe(table.LOOP_LAG, max(0.0, loop.time() - due))

    def look(self) -> None:
        """Set the gauges to what is now."""
        metrics = self._metrics
        self._recent.look()
        metrics.set(table.UNDER_WAY, self._sessions.active)
        metrics.set(table.TASKS, len(asyncio.all_tasks()))
        metrics.set(table.MEMORY, int(_STATM.read_text().split()[1]) * _PAGE_BYTES)
        for size, waiting in zip(LANES, self._preparation.waiting, strict=True):
            metrics.set(table.PREPARATION_QUEUE, waiting, lane_name(size))
        for model in self._sessions.catalog.triton_models():
            metrics.set(table.MODEL_READY, model.ready, model.name)
        if self._accounts is not None:
            metrics.set(table.STORE_UP, self._accounts.store.healthy)
            metrics.set(table.RESERVATIONS, self._accounts.admission.open)
            metrics.set(table.ADMISSION_QUEUE, self._accounts.admission.waiting)
