"""The base line: the same load straight to the fake Triton over gRPC, without Envoy and sidecar."""

from __future__ import annotations

import asyncio
import time

from bench import messages
from bench.figures import Observation
from bench.http2 import Connection, header_block
from bench.messages import Unframer
from bench.stamps import Stamps

_HEAD = header_block(
    (":method", "POST"),
    (":scheme", "http"),
    (":path", messages.STREAM_INFER),
    (":authority", "triton"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
)


class _Call:
    """One request that runs."""

    def __init__(self, seen: Observation, tokens: int) -> None:
        self.seen, self.tokens = seen, tokens
        self.unframer = Unframer()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class DirectConnection(Connection):
    """One connection for all streams, as Envoy has one to Triton per worker thread."""

    def __init__(self, model: str, stamps: Stamps) -> None:
        super().__init__(client=True)
        self._model = model
        self._tick_of = {token_id: tick for tick, token_id in enumerate(stamps.ids)}
        self._calls: dict[int, _Call] = {}
        self._next_stream = 1

    @classmethod
    async def open(cls, port: int, model: str, stamps: Stamps) -> DirectConnection:
        """Connect to the fake Triton.

        Raises:
            OSError: nothing listens there.
        """
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: cls(model, stamps), "127.0.0.1", port)
        return connection

    async def stream(self, seen: Observation, tokens: int) -> None:
        """Call ModelStreamInfer; see :class:`bench.load.Client`."""
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        call = self._calls[stream] = _Call(seen, tokens)
        self.open_stream(stream)
        self.send_headers(stream, _HEAD)
        self.send_data(stream, messages.framed(messages.infer_request(self._model, [1] * 32, tokens)))
        self.end_data(stream)
        self.flush()
        await call.over

    def close(self) -> None:
        """Nothing: the connection is shared by all streams, and is closed with the loop."""

    def headers_received(self, stream: int, headers: dict[str, str], end: bool) -> None:
        """Trailers end the call."""
        if end:
            call = self._calls.pop(stream)
            lost = len(call.seen.ticks) != call.tokens
            call.seen.failure = "tokens lost" if lost or headers["grpc-status"] != "0" else None
            call.over.set_result(None)

    def stream_data_received(self, stream: int, data: bytes, end: bool) -> None:
        """Note the tokens."""
        now = time.monotonic()
        call = self._calls[stream]
        for message in call.unframer.feed(data):
            token_id = messages.token_of(message)
            if token_id is not None:
                call.seen.tokens_arrived([self._tick_of[token_id]], now)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the calls that still run."""
        for call in self._calls.values():
            if not call.over.done():
                call.over.set_exception(exc or ConnectionError("connection closed"))
