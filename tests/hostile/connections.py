"""Clients that mean no good, and one that does: connections to Envoy, byte by byte."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import h2.config
import h2.connection
import h2.events
import httpx2

from stack.local import LocalStack
from tests.e2e.client import Client, script

PATH = "/v1/infer/responses"
_READ_BYTES = 65536


class Connection:
    """One connection to the stack."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> bool:
        """Whether the other side still took it."""
        with suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()
            return not self._reader.at_eof()
        return False

    async def read(self) -> bytes:
        """What has come; empty at the end."""
        with suppress(ConnectionError):
            return await self._reader.read(_READ_BYTES)
        return b""

    async def rest(self) -> bytes:
        """All that comes until the end."""
        received = b""
        while piece := await self.read():
            received += piece
        return received

    async def trickle(self, start: bytes, piece: bytes, seconds: float) -> bytes:
        """Send ``start``, and a ``piece`` every so many seconds until the other side ends it; what it said."""
        await self.send(start)
        answer = asyncio.create_task(self.rest())
        while not answer.done():
            await self.send(piece)
            await asyncio.wait({answer}, timeout=seconds)
        return answer.result()

    def close(self) -> None:
        """Go without a word."""
        self._writer.transport.abort()


@asynccontextmanager
async def connections(stack: LocalStack, count: int) -> AsyncIterator[list[Connection]]:
    """So many connections to the stack, which are closed in the end."""
    opened: list[Connection] = []
    try:
        for _ in range(count):
            opened.append(Connection(*await asyncio.open_connection("127.0.0.1", stack.port)))
        yield opened
    finally:
        for connection in opened:
            connection.close()


class Http2:
    """HTTP/2 on a connection, by a client that heeds no limit it has not read."""

    def __init__(self, connection: Connection, key: str) -> None:
        self._connection = connection
        self._key = key
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
        self._h2.initiate_connection()
        self._next_stream = 1

    def request(self, body: bytes = b"", *, headers: Iterable[tuple[str, str]] = (), end: bool = True) -> int:
        """Begin a request with the key; its stream."""
        stream = self._next_stream
        self._next_stream += 2
        head = [(":method", "POST"), (":path", PATH), (":scheme", "http"), (":authority", "node")]
        head += [("authorization", f"Bearer {self._key}"), ("content-type", "application/json"), *headers]
        self._h2.send_headers(stream, head)
        if body or end:
            self._h2.send_data(stream, body, end_stream=end)
        return stream

    def reset(self, stream: int) -> None:
        """Take a request back."""
        self._h2.reset_stream(stream)

    async def flush(self) -> bool:
        """Send what has been asked for; whether the other side still took it."""
        return await self._connection.send(self._h2.data_to_send())

    async def events(self) -> list[h2.events.Event]:
        """What came next; nothing at the end of the connection."""
        while data := await self._connection.read():
            events = self._h2.receive_data(data)
            await self.flush()
            if events:
                return events
        return []


class Honest:
    """What a client with a key was answered, on a connection that it keeps."""

    def __init__(self) -> None:
        self.answers: Counter[int | str] = Counter()


@asynccontextmanager
async def honest_client(stack: LocalStack) -> AsyncIterator[Honest]:
    """A client that asks again and again while something else goes on; each of its requests must succeed."""
    honest = Honest()
    async with Client(stack) as client:

        async def ask_forever() -> None:
            while True:
                try:
                    honest.answers[(await client.ask(script("ok"))).status_code] += 1
                except httpx2.TransportError as error:
                    honest.answers[repr(error)] += 1
                await asyncio.sleep(0.01)

        # Its connection stands before the attack begins.
        assert (await client.ask(script("ok"))).status_code == 200
        asking = asyncio.create_task(ask_forever())
        try:
            yield honest
        finally:
            # At least one more of its requests is answered while the attack is at its height.
            answered = honest.answers.total()
            while honest.answers.total() < answered + 2 and not asking.done():
                await asyncio.sleep(0.01)
            asking.cancel()
    assert set(honest.answers) == {200}, honest.answers
