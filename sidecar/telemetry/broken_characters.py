"""Tells the operator that Triton breaks characters, and what repairs that, where it is known."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sidecar.exchange.commands import Command
from sidecar.exchange.events import Event
from sidecar.exchange.exchange import Exchange

_log = logging.getLogger(__name__)


class BrokenCharacters:
    """Warns once for each model."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """Look at the report of an exchange that is over."""
        report = exchange.report
        if not (exchange.done and report.broken_characters and report.model and report.remedy):
            return
        if report.model not in self._told:
            self._told.add(report.model)
            _log.warning("model %s: Triton breaks characters into U+FFFD; %s", report.model, report.remedy)
