"""What a worker sees of a transport."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

from sidecar.extproc.sessions import Sessions

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""Of one message of Envoy's, which sends bodies in pieces of at most its buffer limit (1 MiB here)."""


class Serving(Protocol):
    """The ext_proc service and its health on a Unix socket."""

    async def refuse(self) -> None:
        """Tell whoever asks for the service's health that it takes no new streams; it goes on taking them."""

    async def retire(self) -> None:
        """Have Envoy open new streams elsewhere: another listens in the place of this socket now.

        Returns when Envoy has none here any more. Streams that it opens here in the meantime are served.
        """

    async def close(self, seconds: float) -> None:
        """Give what was sent ``seconds`` to be written, then end all streams and stop listening."""


UnaryMethods = Mapping[str, Callable[[bytes], Awaitable[bytes]]]
"""Methods of other services, ``/package.Service/Method``, that answer one serialized message with another.

A method that raises ends its call with a status that tells a fault of ours.
"""
Listen = Callable[[Path, Sessions, UnaryMethods], Awaitable[Serving]]
"""Serves sessions, and other services beside them, on a socket that does not exist yet."""
