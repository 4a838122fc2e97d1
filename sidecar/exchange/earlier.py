"""What a request that continues a stored response begins with, and what is kept of one that is to be stored."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.responses.json_text import Json
from sidecar.stored.items import as_array, lines_of
from sidecar.stored.seals import Place


@dataclass(frozen=True, slots=True)
class Continued:
    """A request that was found to be well-formed, and that continues a stored response."""

    previous_id: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """The conversation so far, as stored lists of items, oldest first. ``size`` is in bytes."""

    texts: Sequence[bytes]

    @property
    def size(self) -> int:
        """All of it."""
        return sum(map(len, self.texts))

    def items(self) -> list[Json]:
        """The items."""
        items: list[Json] = json.loads(as_array(line for text in self.texts for line in lines_of(text)))
        return items


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where a response will be stored, and its own input's items as they are stored."""

    place: Place
    input: bytes


_ITEM = re.compile(r"input\[(\d+)\]")


def own_param(param: str, earlier: int, places: Sequence[int] | None = None) -> str:
    """The path of a value as the client knows it, who has sent only what follows so many ``earlier`` items.

    ``places`` are those that the items had before some were left out.
    """
    found = _ITEM.match(param)
    if found is None:
        return param
    index = int(found[1])
    index = (index if places is None else places[index]) - earlier
    return "previous_response_id" if index < 0 else f"input[{index}]{param[found.end() :]}"
