"""Whether a worker makes traces, and of what: OpenTelemetry's SDK is imported only where they are sent somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidecar.config.models import Config

if TYPE_CHECKING:
    from sidecar.telemetry.traces.exporting import Exporting


def exporting_of(config: Config, index: int) -> Exporting | None:
    """What makes the traces of the worker ``index``; ``None`` where nothing is traced."""
    if config.telemetry.otlp.endpoint is None:
        return None
    from sidecar.telemetry.traces.exporting import Exporting

    return Exporting(config.telemetry.otlp, config.node, index)
