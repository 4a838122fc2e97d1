"""A fake Triton: gRPC with an exact token cadence, cheap enough that a bench never waits for it.

``python -m bench.fake_triton --port 8001 --tokenizer tokenizer.json --rate 20 --ttft 0.05`` serves two token-level
models. A request's ``request_output_len`` is the number of tokens it gets, the first one ``ttft`` seconds after the
request. The model ``paced`` sends the others ``1/rate`` seconds apart, whatever the moment at which earlier ones could
be written; ``unpaced`` sends them all at once. Each token's text is the moment of its writing (see
:mod:`bench.stamps`). One request per stream is served, and its id is not repeated in the answers.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import time
from collections.abc import Mapping
from pathlib import Path

import uvloop

from bench import messages
from bench.http2 import Connection, header_block
from bench.messages import Unframer
from bench.stamps import Stamps, tick_now

PACED = "paced"
UNPACED = "unpaced"

_HEAD = header_block((":status", "200"), ("content-type", "application/grpc"))
_OK = header_block(("grpc-status", "0"))
_UNIMPLEMENTED = header_block(("grpc-status", "12"))


class Model:
    """A model's name, the seconds between its tokens, and every message it can send, built once."""

    def __init__(self, name: str, interval: float, stamps: Stamps) -> None:
        self.interval = interval
        self.tokens = [messages.token_response(name, token_id) for token_id in stamps.ids]
        self.final = messages.final_response(name)


class Generation:
    """One request's tokens that are still to come."""

    __slots__ = ("connection", "due", "head_sent", "left", "model", "stream")

    def __init__(self, connection: ServerConnection, stream: int, model: Model, tokens: int, due: float) -> None:
        self.connection, self.stream, self.model, self.left, self.due = connection, stream, model, tokens, due
        self.head_sent = False


class Cadence:
    """Writes every token at its time; one timer for all streams, one write per connection and tick."""

    def __init__(self, ttft: float) -> None:
        """``ttft`` is in seconds."""
        self._ttft = ttft
        self._queue: list[tuple[float, int, Generation]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, connection: ServerConnection, stream: int, model: Model, tokens: int) -> None:
        """Begin a request's generation."""
        self._push(Generation(connection, stream, model, tokens, time.monotonic() + self._ttft))
        self._set_timer()

    def _push(self, generation: Generation) -> None:
        heapq.heappush(self._queue, (generation.due, next(self._order), generation))

    def _set_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None
        if self._queue:
            # The loop's timers count whole milliseconds: a shorter delay would be none, and the loop would spin.
            delay = max(self._queue[0][0] - time.monotonic(), 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        touched = set()
        now = time.monotonic()
        while self._queue and self._queue[0][0] <= now:
            generation = heapq.heappop(self._queue)[2]
            if generation.stream in generation.connection.outboxes:
                touched.add(generation.connection)
                self._write_next(generation)
        for connection in touched:
            connection.flush()
        self._set_timer()

    def _write_next(self, generation: Generation) -> None:
        connection, stream, model = generation.connection, generation.stream, generation.model
        if not generation.head_sent:
            # As Triton does: the head leaves with the first response.
            connection.send_headers(stream, _HEAD)
            generation.head_sent = True
        if generation.left:
            connection.send_data(stream, model.tokens[tick_now()])
            generation.left -= 1
            generation.due += model.interval if generation.left else 0
            self._push(generation)
        else:
            connection.send_data(stream, model.final)
            connection.send_trailers(stream, _OK)


class ServerConnection(Connection):
    """A client of the fake Triton."""

    def __init__(self, models: Mapping[str, Model], unary: Mapping[str, bytes], cadence: Cadence) -> None:
        super().__init__(client=False)
        self._models, self._unary, self._cadence = models, unary, cadence
        self._requests: dict[int, Unframer] = {}

    def headers_received(self, stream: int, headers: dict[str, str], end: bool) -> None:
        """Answer a unary method at once, whatever it asks; a stream waits for its request."""
        self.open_stream(stream)
        path = headers[":path"]
        if path == messages.STREAM_INFER:
            self._requests[stream] = Unframer()
        elif answer := self._unary.get(path):
            self.send_headers(stream, _HEAD)
            self.send_data(stream, answer)
            self.send_trailers(stream, _OK)
        else:
            self.send_headers(stream, _HEAD)
            self.send_trailers(stream, _UNIMPLEMENTED)

    def stream_data_received(self, stream: int, data: bytes, end: bool) -> None:
        """Start the generation when the request is whole."""
        if unframer := self._requests.get(stream):
            for message in unframer.feed(data):
                del self._requests[stream]
                name, tokens = messages.requested_tokens(message)
                self._cadence.start(self, stream, self._models[name], tokens)
                return

    def stream_reset(self, stream: int) -> None:
        """Forget a cancelled request; its generation ends for want of an outbox."""
        self._requests.pop(stream, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """End all its generations."""
        self.outboxes.clear()


async def serve(port: int, models: Mapping[str, Model], cadence: Cadence) -> None:
    """Listen on 127.0.0.1 until cancelled."""
    loop = asyncio.get_running_loop()
    unary = messages.unary_responses()
    server = await loop.create_server(lambda: ServerConnection(models, unary, cadence), "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench.fake_triton", description="A fake Triton with an exact cadence")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True, help="the models' tokenizer.json")
    parser.add_argument("--rate", type=float, required=True, help="tokens per second and stream of the paced model")
    parser.add_argument("--ttft", type=float, required=True, help="seconds from a request to its first token")
    options = parser.parse_args()
    stamps = Stamps.of_file(options.tokenizer)
    intervals = {PACED: 1 / options.rate, UNPACED: 0.0}
    models = {name: Model(name, interval, stamps) for name, interval in intervals.items()}
    uvloop.run(serve(options.port, models, Cadence(options.ttft)))


if __name__ == "__main__":
    main()
