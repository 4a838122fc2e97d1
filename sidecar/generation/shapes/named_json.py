"""Calls as a name, or an id that holds it (``functions.f:0``), and the arguments as a JSON object, between markers."""

from __future__ import annotations

import re
from typing import ClassVar

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Steps

_ID = re.compile(r"[\w.:-]*")
_NAME = re.compile(r"(?:functions\.)?([\w.-]*)(?::\d*)?")


class NamedJsonParser(CallParser):
    """Reads text with such calls: ``call_marker`` stands before the name, ``arguments_marker`` after it.

    Other markers of ``begins`` may stand before them, once for all calls.
    """

    call_marker: ClassVar[str]
    arguments_marker: ClassVar[str]

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while (yield from self.text()):
            yield from self.source.space()
            yield from self.source.literal(self.call_marker)
            yield from self.source.space()
            name = _NAME.fullmatch((yield from self.word(_ID)))
            yield from self.source.space()
            yield from self.source.literal(self.arguments_marker)
            if (yield from self.arguments(name[1] if name else "")):
                yield from self.closing()
