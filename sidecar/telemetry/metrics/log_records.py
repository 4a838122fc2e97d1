"""Counts what the log tells the operator to look at."""

from __future__ import annotations

import logging

from sidecar.telemetry.metrics import table
from sidecar.telemetry.metrics.metrics import Metrics

_EXT_PROC = {
    "sidecar.extproc.driver": "service",
    "sidecar.extproc.session": "route",
    "sidecar.extproc.wires.origin": "route",
    "sidecar.grpc_h2.call": "call",
    "sidecar.grpc_h2.endpoint": "connection",
}
"""What has failed where one of these modules warns: each failure of ext_proc has one line there."""


class CountLogRecords(logging.Handler):
    """A handler that writes nothing. The part is the package of ``sidecar`` that logs; all others are ``other``."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(logging.WARNING)
        self._metrics = metrics

    def emit(self, record: logging.LogRecord) -> None:
        """Count ``record``."""
        names = record.name.split(".")
        part = names[1] if names[0] == "sidecar" and len(names) > 1 else "other"
        self._metrics.count(table.LOG_RECORDS, part, "error" if record.levelno >= logging.ERROR else "warning")
        if (kind := _EXT_PROC.get(record.name)) is not None:
            self._metrics.count(table.EXT_PROC_ERRORS, kind)
