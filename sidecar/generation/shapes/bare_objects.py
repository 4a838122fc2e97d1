"""Calls as a name and an object with bare keys, whose strings stand between a delimiter of the family's own.

call:f{city:<escape>Paris<escape>,days:2,at:{x:1.5}}
"""

from __future__ import annotations

import re
from typing import ClassVar

from sidecar.generation.calls import CallParser
from sidecar.generation.coroutine import markers_of
from sidecar.generation.json_scanner import JsonScanner, escaped
from sidecar.generation.source import Emit, Source, Steps

_KEY = re.compile(r"[^:{}\[\],<>\"\n]*")
_LONGEST_KEY = 256


class BareScanner(JsonScanner):
    """Reads such objects, and passes on the JSON of the same values. ``quote`` stands on either side of a string."""

    def __init__(self, source: Source, quote: str, walls: tuple[str, ...]) -> None:
        super().__init__(source, walls)
        self._quote = quote
        self._string_end = markers_of((quote, *walls))

    def _key(self) -> Steps[bool]:
        key = (yield from self._source.word(_KEY, _LONGEST_KEY)).strip()
        if not key:
            return (yield from super()._key())
        if not (yield from self._source.literal(":")):
            return False
        self._pending.append(f'"{escaped(key)}": ')
        yield from self._source.space()
        return True

    def _scalar(self, character: str, emit: Emit) -> Steps[bool]:
        if not (yield from self._source.literal(self._quote)):
            return (yield from super()._scalar(character, emit))
        self._pass_on('"', emit)
        end = yield from self._source.until(self._string_end, lambda text: emit(escaped(text)))
        if end == self._quote:
            self._source.take(len(end))
        if end or not self._source.cut:
            emit('"')
        return end == self._quote


class BareObjectsParser(CallParser):
    """Reads text with such calls, whose strings stand between ``quote``."""

    quote: ClassVar[str]

    def _look_for_markers(self) -> None:
        super()._look_for_markers()
        self.json = BareScanner(self.source, self.quote, self.tokens)

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while (yield from self.text()):
            yield from self.source.space()
            yield from self.source.literal("call:")
            if (yield from self.arguments((yield from self.word()))):
                yield from self.closing()
