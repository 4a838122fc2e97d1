"""Calls as a name and pairs of a key and its bare value, each between tags."""

from __future__ import annotations

import re
from typing import ClassVar

from sidecar.generation.shapes.tagged import TaggedParser
from sidecar.generation.source import Steps

_KEY = re.compile(r"[^<>\n]*")


class KeyValueParser(TaggedParser):
    """Reads text with such calls.

    ``parameter_tag`` and ``key_end`` stand around a key, ``value_tag`` and ``parameter_end`` around its value.
    """

    key_end: ClassVar[str]
    value_tag: ClassVar[str]

    def opened(self) -> Steps[bool]:
        """Only the first key, or the end, tells that the word before it is a call's name."""
        yield from self.source.space()
        return bool((yield from self.source.ahead(self.parameter_tag, self.call_end)))

    def parameter(self) -> Steps[tuple[str, bool] | None]:
        """Read a key up to where its value begins."""
        name = yield from self.word(_KEY)
        if not name or not (yield from self.source.literal(self.key_end)):
            return None
        yield from self.source.space()
        return (name, False) if (yield from self.source.literal(self.value_tag)) else None
