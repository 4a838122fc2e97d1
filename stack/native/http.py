"""HTTP/1.1 by hand: half of what is played here, no library would send."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
from collections.abc import Mapping


class Exchange:
    """The answer to one request. ``whole`` is whether the connection can take another."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.whole = False

    async def reply(
        self,
        status: int,
        body: str | bytes,
        headers: Mapping[str, str] | None = None,
        longer: int = 0,
        zipped: bool = False,
    ) -> None:
        """A whole answer, whose length is told as ``longer`` than it is."""
        content = body.encode() if isinstance(body, str) else body
        if zipped:
            content = gzip.compress(content)
        told = {"content-type": "application/json", "x-request-id": "req_of_the_upstream", **(headers or {})}
        told |= {"content-length": str(len(content) + longer), **({"content-encoding": "gzip"} if zipped else {})}
        self._head(status, told)
        self._writer.write(content)
        await self.drain()
        if longer:
            self.close(reset=False)
        self.whole = not longer

    def chunked(self, content_type: str) -> None:
        """The head of a stream."""
        self._head(200, {"content-type": content_type, "transfer-encoding": "chunked", "x-upstream": "scripted"})

    def chunk(self, data: bytes) -> None:
        """A piece of a stream."""
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        """The end of a stream."""
        self._writer.write(b"0\r\n\r\n")
        self.whole = True

    def close(self, reset: bool) -> None:
        """The end of the connection."""
        if reset:
            linger = struct.pack("ii", 1, 0)
            self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._writer.close()

    async def drain(self) -> None:
        """Wait until what was written can go."""
        await self._writer.drain()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._writer.write(f"HTTP/1.1 {status} Status\r\n{lines}\r\n".encode("latin-1"))
