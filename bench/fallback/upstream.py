"""The fake model server in Python, for machines without a C compiler: the same as ``native/upstream/``, and dearer.

``python -m bench.fallback.upstream SCRIPT GRPC_PORT HTTP_PORT``; :mod:`bench.script` tells what it speaks.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import uvloop

from bench import messages
from bench.http2 import Connection
from bench.messages import Unframer
from bench.script import Face, Script, read
from bench.stamps import tick_now

_CADENCE = re.compile(rb"POST /cadence/(\d+)/(\d+)/(\d+)/([01]) ")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass
class Cadence:
    """How requests are answered that come now; times in seconds."""

    interval: float = 0
    ttft: float = 0
    tokens: int = 1
    in_step: bool = False

    def first(self) -> float:
        """When the first token of a request that has just come is due."""
        due = time.monotonic() + self.ttft
        return due + self.interval - due % self.interval if self.in_step and self.interval else due


class Answer:
    """What an answer is written to."""

    alive = True

    def begin(self) -> None:
        """Write the head and what comes before the tokens."""
        raise NotImplementedError

    def token(self, tick: int) -> None:
        """Write the token that tells a tick."""
        raise NotImplementedError

    def end(self) -> None:
        """Write what comes after the tokens."""
        raise NotImplementedError

    def flush(self) -> None:
        """Let what was written leave."""


@dataclass(order=True)
class Generation:
    """An answer and when its next token is due."""

    due: float
    order: int
    left: int = field(compare=False)
    answer: Answer = field(compare=False)
    begun: bool = field(compare=False, default=False)


class Clock:
    """Writes every token at its time; one timer for all streams, one write per connection and tick."""

    def __init__(self) -> None:
        self.cadence = Cadence()
        self._queue: list[Generation] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, answer: Answer) -> None:
        """Begin to answer a request."""
        due, tokens = self.cadence.first(), self.cadence.tokens
        heapq.heappush(self._queue, Generation(due, next(self._order), tokens, answer))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None
        if self._queue:
            # The loop's timers count whole milliseconds: a shorter delay would be none, and the loop would spin.
            delay = max(self._queue[0].due - time.monotonic(), 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        now = time.monotonic()
        touched = []
        while self._queue and self._queue[0].due <= now:
            generation = heapq.heappop(self._queue)
            if generation.answer.alive:
                touched.append(generation.answer)
                self._write_next(generation)
        for answer in touched:
            answer.flush()
        self._set_timer()

    def _write_next(self, generation: Generation) -> None:
        answer = generation.answer
        if not generation.begun:
            generation.begun = True
            answer.begin()
        if generation.left:
            answer.token(tick_now())
            generation.left -= 1
            generation.due += self.cadence.interval if generation.left else 0
            heapq.heappush(self._queue, generation)
        else:
            answer.end()


class GrpcAnswer(Answer):
    """The answer to one call of ModelStreamInfer."""

    def __init__(self, connection: GrpcConnection, stream: int, script: Script) -> None:
        self._connection, self._stream = connection, stream
        self._face, self._ids = script.faces[0], script.ids

    @property
    def alive(self) -> bool:  # type: ignore[override]
        """Whether the client still waits."""
        return self._stream in self._connection.outboxes

    def begin(self) -> None:
        """As Triton does: the head leaves with the first response."""
        self._connection.send_headers(self._stream, self._face.head)

    def token(self, tick: int) -> None:
        """One response."""
        self._connection.send_data(self._stream, self._face.prefix + self._ids[tick] + self._face.suffix)

    def end(self) -> None:
        """The final response and the trailers."""
        self._connection.send_data(self._stream, self._face.last)
        self._connection.send_trailers(self._stream, self._face.end)

    def flush(self) -> None:
        """One write for the connection."""
        self._connection.flush()


class GrpcConnection(Connection):
    """A client of the fake Triton. One request per stream is answered."""

    def __init__(self, script: Script, clock: Clock) -> None:
        super().__init__()
        self._script, self._clock = script, clock
        self._requests: dict[int, Unframer] = {}

    def headers_received(self, stream: int, headers: dict[str, str], end: bool) -> None:
        """Answer a unary method at once, whatever it asks; a stream waits for its request."""
        self.open_stream(stream)
        face = self._script.faces[0]
        if answer := self._script.unary.get(headers[":path"]):
            self.send_headers(stream, face.head)
            self.send_data(stream, answer)
            self.send_trailers(stream, face.end)
        elif headers[":path"] == messages.STREAM_INFER:
            self._requests[stream] = Unframer()

    def stream_data_received(self, stream: int, data: bytes, end: bool) -> None:
        """Start the generation when the request is whole."""
        unframer = self._requests.get(stream)
        if unframer and any(True for _ in unframer.feed(data)):
            del self._requests[stream]
            self._clock.start(GrpcAnswer(self, stream, self._script))

    def stream_reset(self, stream: int) -> None:
        """Forget a cancelled request; its generation ends for want of an outbox."""
        self._requests.pop(stream, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """End all its generations."""
        self.outboxes.clear()


class HttpAnswer(Answer):
    """A streamed answer in the chunked transfer coding."""

    def __init__(self, transport: asyncio.Transport, face: Face, words: list[bytes]) -> None:
        self._transport, self._face, self._words = transport, face, words

    def begin(self) -> None:
        """The head and the first message."""
        self._transport.write(self._face.head + _chunk(self._face.first))

    def token(self, tick: int) -> None:
        """One event."""
        self._transport.write(_chunk(self._face.prefix + self._words[tick] + self._face.suffix))

    def end(self) -> None:
        """The last message and the end of the body."""
        self._transport.write(_chunk(self._face.last) + self._face.end)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class HttpConnection(asyncio.Protocol):
    """A client of the other faces, one request at a time."""

    def __init__(self, script: Script, clock: Clock) -> None:
        self._script, self._clock = script, clock
        self._buffer = b""
        self._transport: asyncio.Transport
        self._answer: HttpAnswer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End its generation."""
        if self._answer:
            self._answer.alive = False

    def data_received(self, data: bytes) -> None:
        """Answer a request that is whole."""
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if end and len(body) >= (int(length[1]) if length else 0):
            self._buffer = b""
            self._respond(head)

    def _respond(self, head: bytes) -> None:
        if cadence := _CADENCE.match(head):
            interval, ttft, tokens, in_step = map(int, cadence.groups())
            self._clock.cadence = Cadence(interval / 1e9, ttft / 1e9, tokens, bool(in_step))
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        elif head.startswith((b"POST /v1/chat/completions ", b"POST /v1/responses ")):
            face = self._script.faces[1 if head.startswith(b"POST /v1/chat") else 2]
            self._answer = HttpAnswer(self._transport, face, self._script.words)
            self._clock.start(self._answer)
        else:
            fields = b"content-type: application/json\r\ncontent-length: %d" % len(self._script.models)
            self._transport.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (fields, self._script.models))


async def serve(script: Script, grpc_port: int, http_port: int) -> None:
    """Listen on 127.0.0.1 until cancelled."""
    loop, clock = asyncio.get_running_loop(), Clock()
    listeners: list[tuple[Callable[[], asyncio.Protocol], int]] = [
        (lambda: GrpcConnection(script, clock), grpc_port),
        (lambda: HttpConnection(script, clock), http_port),
    ]
    servers = [await loop.create_server(protocol, "127.0.0.1", port) for protocol, port in listeners]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    uvloop.run(serve(read(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])))
