"""A client of the Responses API for load: HTTP/1.1 over one connection, no more of either than an answer needs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from typing import cast

from bench.figures import Observation

_DELTA = b"response.output_text.delta"
_TERMINAL = (b"response.completed", b"response.incomplete")


class ChunkedBody:
    """Takes the chunked transfer coding (RFC 9112 section 7.1) off the bytes, however they are split; no trailers."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.ended = False

    def feed(self, data: bytes) -> bytes:
        """The content of the chunks that ``data`` completes."""
        self._buffer += data
        chunks = []
        position = 0
        while (line_end := self._buffer.find(b"\r\n", position)) >= 0:
            size = int(self._buffer[position:line_end], 16)
            end = line_end + 2 + size
            if len(self._buffer) < end + 2:
                break
            chunks.append(self._buffer[line_end + 2 : end])
            self.ended = size == 0
            position = end + 2
        del self._buffer[:position]
        return b"".join(chunks)


class EventReader:
    """Cuts server-sent events of one ``event`` and one ``data`` line out of any split of the bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Name and data of the events that ``data`` completes; comments are skipped."""
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            if not event.startswith(b":"):
                name, _, content = event.partition(b"\ndata: ")
                yield name.removeprefix(b"event: "), content


class Answer:
    """Fills an observation from the bytes of one HTTP response."""

    def __init__(self, seen: Observation, ticks: Mapping[str, int]) -> None:
        self._seen, self._ticks = seen, ticks
        self._head = b""
        self._body: ChunkedBody | None = None
        self._events = EventReader()
        self._terminal = False

    def feed(self, data: bytes, now: float) -> bool:
        """Take bytes that arrived at ``now``; whether the answer is over.

        Raises:
            ConnectionError: the answer is no event stream of ours; the message says what it is.
        """
        if self._body is None:
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not end:
                return False
            if not head.startswith(b"HTTP/1.1 200") or b"chunked" not in head.lower():
                raise ConnectionError(f"HTTP {head[9:12].decode()}")
            self._body = ChunkedBody()
        for name, content in self._events.feed(self._body.feed(data)):
            if name == _DELTA:
                self._seen.tokens_arrived([self._ticks[word] for word in json.loads(content)["delta"].split()], now)
            elif name == b"error":
                raise ConnectionError("error event")
            self._terminal = name in _TERMINAL
        if self._body.ended:
            self._seen.failure = None if self._terminal else "no terminal event"
        return self._body.ended


class ResponsesConnection(asyncio.Protocol):
    """One keep-alive connection; one request at a time."""

    def __init__(self, ticks: Mapping[str, int]) -> None:
        self._ticks = ticks
        self._transport: asyncio.Transport
        self._answer: Answer
        self._over: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, port: int, ticks: Mapping[str, int]) -> ResponsesConnection:
        """Connect to a port of this machine.

        Raises:
            OSError: nothing listens there.
        """
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: cls(ticks), "127.0.0.1", port)
        return connection

    async def stream(self, seen: Observation, request: bytes) -> None:
        """Send a request and fill the observation until its answer has ended.

        Raises:
            OSError: the connection broke, or the answer is none.
        """
        self._answer = Answer(seen, self._ticks)
        self._over = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        await self._over

    def close(self) -> None:
        """Drop the connection."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Hand the bytes to the answer that runs."""
        if self._over and not self._over.done():
            try:
                if self._answer.feed(data, time.monotonic()):
                    self._over.set_result(None)
            except (ConnectionError, KeyError) as error:
                self._over.set_exception(ConnectionError(str(error)))
                self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that still runs."""
        if self._over and not self._over.done():
            self._over.set_exception(exc or ConnectionError("connection closed"))
