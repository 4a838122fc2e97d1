"""An answer that may be given again, as it is kept: its status, headers and body in one compressed text."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sidecar.responses.json_text import json_bytes

# Events repeat themselves: even the fastest level takes nine tenths of them away.
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client was given; ``headers`` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def pack(self) -> bytes:
        """The text that is kept. For megabytes it takes a tenth of a second: not for an event loop."""
        head = json_bytes({"status": self.status, "headers": dict(self.headers)})
        return zlib.compress(head + b"\n" + self.body, _LEVEL)

    @classmethod
    def unpack(cls, text: bytes) -> Self:
        """The answer of a text that :meth:`pack` has made."""
        head, _, body = zlib.decompress(text).partition(b"\n")
        told = json.loads(head)
        return cls(told["status"], told["headers"], body)
