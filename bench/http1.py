"""A client of the Responses API for load: HTTP/1.1 over one connection, no more of either than an answer needs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import cast
from urllib.parse import urlsplit

from bench.figures import Observation
from bench.stamps import Stamps

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

    def __init__(self, seen: Observation, tokens: int, stamps: Stamps) -> None:
        self._seen, self._tokens, self._stamps = seen, tokens, stamps
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
                raise ConnectionError(head.split(b"\r\n")[0].decode())
            self._body = ChunkedBody()
        for name, content in self._events.feed(self._body.feed(data)):
            if name == _DELTA:
                self._seen.tokens_arrived(self._stamps.read(json.loads(content)["delta"]), now)
            elif name == b"error":
                raise ConnectionError(json.loads(content)["code"])
            self._terminal = name in _TERMINAL
        if self._body.ended:
            self._seen.failure = self._verdict()
        return self._body.ended

    def _verdict(self) -> str | None:
        if not self._terminal:
            return "no terminal event"
        return None if len(self._seen.ticks) == self._tokens else "tokens lost"


class ResponsesConnection(asyncio.Protocol):
    """One keep-alive connection; one request at a time."""

    def __init__(self, host: str, head: str, model: str, stamps: Stamps) -> None:
        self._host, self._head, self._model, self._stamps = host, head, model, stamps
        self._transport: asyncio.Transport
        self._answer: Answer
        self._over: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, url: str, api_key: str, model: str, stamps: Stamps) -> ResponsesConnection:
        """Connect to the server of ``url``, the full URL of the create endpoint.

        Raises:
            OSError: nothing listens there.
        """
        parts = urlsplit(url)
        head = f"POST {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\nauthorization: Bearer {api_key}\r\n"
        loop = asyncio.get_running_loop()
        assert parts.hostname is not None and parts.port is not None, "the stack's URLs name both"
        _, connection = await loop.create_connection(
            lambda: cls(parts.netloc, head, model, stamps), parts.hostname, parts.port
        )
        return connection

    async def stream(self, seen: Observation, tokens: int) -> None:
        """Post a streamed request for ``tokens`` tokens; see :class:`bench.load.Client`."""
        request = {
            "model": self._model,
            "input": "Name the moments as they pass.",
            "max_output_tokens": tokens,
            "stream": True,
            "store": False,
        }
        body = json.dumps(request)
        self._answer = Answer(seen, tokens, self._stamps)
        self._over = asyncio.get_running_loop().create_future()
        head = f"{self._head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._transport.write((head + body).encode())
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
