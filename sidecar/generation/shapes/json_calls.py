"""Calls as JSON objects with name and arguments, alone, several in a row, or in a list, after a marker."""

from __future__ import annotations

from typing import ClassVar

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Steps


class JsonCallsParser(CallParser):
    """Reads text with such calls. ``lead`` may stand between the marker and the calls."""

    lead: ClassVar[tuple[str, ...]] = ()

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while (yield from self.text()):
            yield from self.source.space()
            yield from self.source.literal(*self.lead)
            yield from self.calls()
