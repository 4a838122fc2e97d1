"""One ext_proc stream drives one exchange: Envoy's messages become its events, its actions become messages.

The stream is the seam towards the transport: anything that reads ``ProcessingRequest`` and writes
``ProcessingResponse`` can carry a session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from math import inf
from typing import Protocol

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from sidecar.egress.budget import UnlimitedBytes
from sidecar.egress.loader import ImageLoader
from sidecar.exchange.actions import Action, CallUpstream, FetchImages, Finish, SendBody, SendHead
from sidecar.exchange.events import Abort, ClientGone, Event, ImagesFetched, RequestComplete, Tick
from sidecar.exchange.exchange import Exchange
from sidecar.extproc import messages
from sidecar.extproc.preparation import Preparation
from sidecar.extproc.wires import WIRES, Wire
from sidecar.images.image import Image
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply

_log = logging.getLogger(__name__)


class Stream(Protocol):
    """One bidirectional ext_proc stream, messages in and messages out."""

    async def read(self) -> ProcessingRequest | None:
        """Envoy's next message, or ``None`` when it has closed the stream."""

    async def write(self, message: ProcessingResponse) -> None:
        """Send a message; calls must not overlap."""


class Clock(Protocol):
    """The two clocks a session reads, in seconds."""

    def monotonic(self) -> float:
        """Never goes back."""

    def unix(self) -> float:
        """Since the epoch."""


class Session:
    """One request's way through the sidecar.

    ``prepare`` runs the heavy steps before the call (parsing, rendering, tokenizing) off the event loop.
    """

    def __init__(
        self,
        stream: Stream,
        exchange: Exchange,
        *,
        wire: str,
        clock: Clock,
        prepare: Preparation,
        images: ImageLoader,
    ) -> None:
        self._stream = stream
        self._exchange = exchange
        self._make_wire = WIRES[wire]
        self._clock = clock
        self._prepare = prepare
        self._images = images
        self._wire: Wire
        # A tick or an abort may come while an upstream message is handled; each is handled and written whole.
        self._lock = asyncio.Lock()
        self.request_id = ""

    async def run(self) -> None:
        """Serve the request to its end.

        Returns only when Envoy needs nothing more: a return before that would pass Triton's raw bytes to the client.

        Raises:
            asyncio.CancelledError: Envoy has given the stream up; the exchange knows.
        """
        try:
            request = await self._read_request()
            if request is None:
                return
            await self._begin(request)
            await self._relay()
        except asyncio.CancelledError:
            self._exchange.handle(ClientGone())
            raise
        except Exception:
            _log.exception("request %s failed", self.request_id)
            await self.abort(ApiError("internal", f"internal error (request {self.request_id})"))

    @property
    def due_at(self) -> float:
        """When a tick will change something, on the monotonic clock; infinity while something is being handled."""
        return inf if self._lock.locked() else self._exchange.due_at

    async def tick(self) -> None:
        """Let the exchange notice that time has passed."""
        await self._handle(Tick(self._clock.monotonic()))

    async def abort(self, error: ApiError) -> None:
        """End the exchange with ``error`` now."""
        await self._handle(Abort(error))

    async def _read_request(self) -> RequestComplete | None:
        """The client's whole request; ``None`` when there is none to serve."""
        message = await self._stream.read()
        if message is None or not message.HasField("request_headers"):
            await self._pass_through(message)
            return None
        head_at, unix_time = self._clock.monotonic(), self._clock.unix()
        headers = messages.headers_of(message.request_headers.headers)
        self.request_id = headers.get("x-request-id", "")
        body, size = bytearray(), 0
        ended = message.request_headers.end_of_stream
        while not ended:
            message = await self._stream.read()
            if message is None or message.HasField("response_headers"):
                await self._pass_through(message)
                return None
            if message.HasField("request_body"):
                size += len(message.request_body.body)
                if size <= self._exchange.max_request_bytes:
                    body += message.request_body.body
                ended = message.request_body.end_of_stream
            else:
                ended = message.HasField("request_trailers")
        self._wire = self._make_wire(headers)
        return RequestComplete(headers, bytes(body), size, head_at, unix_time)

    async def _begin(self, request: RequestComplete) -> None:
        executor = self._prepare.executor(request.body_bytes)
        for action in await self._handle_heavy(request, executor):
            if isinstance(action, FetchImages):
                await self._handle_heavy(await self._fetch(action), executor)

    async def _handle_heavy(self, event: Event, executor: Executor) -> list[Action]:
        loop = asyncio.get_running_loop()
        async with self._lock:
            actions = await loop.run_in_executor(executor, self._exchange.handle, event)
            await self._perform(actions)
        return actions

    async def _fetch(self, action: FetchImages) -> ImagesFetched:
        """Load images; meanwhile the exchange may be aborted."""
        images: Sequence[Image] | ApiError
        try:
            images = await self._images.load(action.refs, UnlimitedBytes())
        except ApiError as error:
            images = error
        return ImagesFetched(images, self._clock.monotonic())

    async def _relay(self) -> None:
        """Feed the upstream's messages to the exchange until it is done."""
        while not self._exchange.done:
            message = await self._stream.read()
            if message is None:
                self._exchange.handle(ClientGone())
                return
            await self._handle(*self._wire.receive(message, self._clock.monotonic()))

    async def _handle(self, *events: Event) -> None:
        async with self._lock:
            await self._perform([action for event in events for action in self._exchange.handle(event)])

    async def _perform(self, actions: list[Action]) -> None:
        for message in self._messages(actions):
            await self._stream.write(message)

    def _messages(self, actions: Iterable[Action]) -> Iterable[ProcessingResponse]:
        """The fewest messages for ``actions``: bytes that go out together share one."""
        data: list[bytes] = []
        for action in actions:
            match action:
                case SendBody():
                    data.append(action.data)
                case SendHead():
                    yield self._wire.head(action.headers)
                case Finish():
                    yield from self._wire.finish(b"".join(data))
                    return
                case CallUpstream():
                    yield from self._wire.call(action)
                case FetchImages():
                    pass
                case Reply():
                    yield messages.immediate(action)
        if data:
            yield messages.response_body(b"".join(data), end=False)

    async def _pass_through(self, message: ProcessingRequest | None) -> None:
        """Let an answer that Envoy made itself go to the client as it is."""
        self._exchange.handle(ClientGone())
        while message is not None:
            if message.HasField("response_headers"):
                await self._stream.write(messages.response_headers())
                if message.response_headers.end_of_stream:
                    return
            elif message.HasField("response_body"):
                body = message.response_body
                await self._stream.write(messages.response_body(body.body, end=body.end_of_stream))
                if body.end_of_stream:
                    return
            elif message.HasField("response_trailers"):
                await self._stream.write(messages.response_trailers())
                return
            message = await self._stream.read()
