"""One ext_proc stream: Envoy's messages become the events of an exchange, its commands become messages.

The translation is synchronous. A transport pushes each message of Envoy's in as it comes, and takes what is sent; an
ask that is answered, a tick or an abort may send as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import Protocol

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from sidecar.backends.native.failures import UNREACHABLE
from sidecar.exchange.commands import TRITON, CallUpstream, Command, Finish, SendBody, SendHead
from sidecar.exchange.events import Abort, ClientGone, RequestComplete, Tick, UpstreamEnd, UpstreamHead
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.forwarded import TRACE_HEADERS
from sidecar.extproc import messages
from sidecar.extproc.driver import Clock, Driver, Observer, Performers, Tracer
from sidecar.extproc.metadata import metadata_of
from sidecar.extproc.wires import Wire, WireEnd
from sidecar.responses.errors import ApiError
from sidecar.responses.marks import NOTHING
from sidecar.responses.reply import Reply

_log = logging.getLogger(__name__)

NO_TRACE: Mapping[str, str] = MappingProxyType({})


class Transport(Protocol):
    """The sending side of one ext_proc stream. Neither method waits."""

    @property
    def congested(self) -> bool:
        """Whether what was sent earlier still waits for Envoy to read it."""

    def send(self, message: bytes, mark: int) -> None:
        """Send a serialized ``ProcessingResponse``, after those that were sent before.

        Once it has been handed over, ``mark``, unless it is ``NOTHING``, is stored in the session's
        ``delivered.cell[0]``.
        """

    def close(self) -> None:
        """End the stream well, once everything has been sent: Envoy needs nothing more."""


class Session:
    """One request's way through the sidecar, over ``wire`` to its upstream."""

    def __init__(
        self,
        transport: Transport,
        exchange: Exchange,
        wire: Wire,
        performers: Performers,
        observers: Sequence[Observer],
        clock: Clock,
        tracer: Tracer | None = None,
        trace: Mapping[str, str] = NO_TRACE,
    ) -> None:
        """``trace`` are the headers of Envoy's own part of the request's trace, where it takes part in it."""
        self.delivered = exchange.report.delivered
        """Where the transport notes what it has handed over."""
        self._transport: Transport = transport
        self.exchange = exchange
        self._driver = Driver(exchange, performers, observers, clock, self._send_all)
        self._clock = clock
        self._monotonic = clock.monotonic
        self._wire = wire
        self._body = wire.body
        self._request = _Request(trace)
        self._tracer = tracer
        # What takes Envoy's next message; it changes as the stream goes on.
        self._take: Callable[[bytes], None] = self._take_head

    def receive(self, message: bytes) -> None:
        """Take Envoy's next message, a serialized ``ProcessingRequest``."""
        try:
            self._take(message)
        except Exception as error:
            self.abort(self._driver.fault("a message could not be handled", error))

    def drained(self) -> None:
        """The transport is congested no more."""
        self._wire.drained()

    def lost(self) -> None:
        """The stream is over: all has been handed over, or the client has left. What comes last begins."""
        self._take = _ignore
        self._wire.hang_up()
        self.delivered.detach()
        self._driver.handle(ClientGone())
        self._driver.begin_last()
        # It holds the session, which would be freed by a garbage collection only, and that stops the loop.
        self._transport = _NOBODY

    @property
    def congested(self) -> bool:
        """Whether what was sent still waits for Envoy to read it."""
        return self._transport.congested

    def upstream_head(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the head of the upstream's answer."""
        self._send_all(self._driver.handle(UpstreamHead(status, headers, self._clock.monotonic())))

    def upstream(self, data: bytes) -> None:
        """Take bytes of the upstream's answer that do not come in Envoy's messages."""
        try:
            self._read(data, None)
        except Exception as error:
            self.abort(self._driver.fault("the upstream's bytes could not be handled", error))

    def upstream_ended(self, end: WireEnd) -> None:
        """The upstream's answer has ended."""
        self._send_all(self._driver.handle(UpstreamEnd(*end, self._clock.monotonic())))

    @property
    def due_at(self) -> float:
        """When a tick will change something, on the monotonic clock; infinity while Envoy does not read."""
        return inf if self._transport.congested else self.exchange.due_at

    def tick(self) -> None:
        """Let the exchange notice that time has passed."""
        self._send_all(self._driver.handle(Tick(self._clock.monotonic())))

    def abort(self, error: ApiError) -> None:
        """End the exchange with ``error`` now."""
        self._send_all(self._driver.handle(Abort(error)))

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way that outlives the stream."""
        return self._driver.is_settled

    async def settled(self) -> None:
        """Wait until all that outlives the stream has been done."""
        await self._driver.settled()

    def _take_head(self, data: bytes) -> None:
        message = ProcessingRequest.FromString(data)
        if not message.HasField("request_headers"):
            self._pass_on(message)
            return
        request = self._request
        request.begin(message, self._clock)
        self.exchange.report.request_id = request.headers.get("x-request-id", "")
        self._take = self._take_body
        if message.request_headers.end_of_stream:
            self._complete_request()

    def _take_body(self, data: bytes) -> None:
        message = ProcessingRequest.FromString(data)
        if message.HasField("response_headers"):
            self._pass_on(message)
        elif self._request.add(message, self.exchange.max_request_bytes):
            self._complete_request()

    def _complete_request(self) -> None:
        self._take = self._take_early
        self._send_all(self._driver.handle(self._request.complete(self._clock.monotonic())))

    def _take_early(self, data: bytes) -> None:
        """Before the upstream is called only an answer of Envoy's own can come."""
        message = ProcessingRequest.FromString(data)
        if message.HasField("response_headers"):
            self._pass_on(message)

    def _take_upstream(self, message: bytes) -> None:
        data, end = self._wire.receive(message)
        self._read(data, end)

    def _read(self, data: bytes, end: WireEnd | None) -> None:
        """Take bytes of the upstream's answer, whatever brought them, and its end. This is the per-token path."""
        at = self._monotonic()
        events = self._driver.upstream(data, at) if data else b""
        if type(events) is bytes and end is None:
            if events:
                self._transport.send(self._body(events), self.delivered.written)
            return
        commands: Sequence[Command] = [SendBody(events)] if isinstance(events, bytes) else events
        if end is not None:
            commands = [*commands, *self._driver.handle(UpstreamEnd(*end, at))]
        self._send_all(commands)

    def _pass_on(self, message: ProcessingRequest) -> None:
        """Let an answer that Envoy made itself go to the client as it is."""
        self._driver.handle(ClientGone())
        self._take = self._take_rest
        self._pass_on_rest(message)

    def _take_rest(self, data: bytes) -> None:
        self._pass_on_rest(ProcessingRequest.FromString(data))

    def _pass_on_rest(self, message: ProcessingRequest) -> None:
        if message.HasField("response_headers"):
            self._send(messages.response_headers(), NOTHING)
            ended = message.response_headers.end_of_stream
        elif message.HasField("response_body"):
            body = message.response_body
            self._send(messages.response_body(body.body, end=body.end_of_stream), NOTHING)
            ended = body.end_of_stream
        else:
            ended = message.HasField("response_trailers")
            if ended:
                self._send(messages.response_trailers(), NOTHING)
        if ended:
            self._close()

    def _send_all(self, commands: Sequence[Command]) -> None:
        for message, mark in self._messages(commands):
            self._transport.send(message, mark)

    def _send(self, message: ProcessingResponse, mark: int) -> None:
        self._transport.send(message.SerializeToString(), mark)

    def _messages(self, commands: Sequence[Command]) -> Iterator[tuple[bytes, int]]:
        """The fewest messages for ``commands``, and their marks: bytes that go out together share one."""
        data = b""
        for command in commands:
            match command:
                case SendBody():
                    data = data + command if data else command
                case SendHead(headers):
                    yield self._wire.head(headers), NOTHING
                case Finish():
                    *earlier, last = self._wire.finish(data)
                    last += metadata_of(self.exchange.report, answered=True)
                    yield from ((message, self.delivered.written) for message in (*earlier, last))
                    self._close()
                    return
                case CallUpstream(host=host) if host != TRITON and not self._wire.reaches_all:
                    _log.error("a route asks for another wire than the tunnel, which native upstreams need")
                    self.abort(UNREACHABLE.error("the wire does not reach it"))
                    return
                case CallUpstream():
                    self._take = self._take_upstream
                    for message in self._wire.call(self._traced(command), self._request.headers, self):
                        yield message, NOTHING
                case Reply():
                    metadata = metadata_of(self.exchange.report, answered=False)
                    yield messages.immediate(command).SerializeToString() + metadata, NOTHING
                    self._close()
        if data:
            yield self._body(data), self.delivered.written

    def _traced(self, call: CallUpstream) -> CallUpstream:
        if self._tracer is None:
            return call
        return replace(call, headers={**call.headers, **self._tracer.headers(self.exchange)})

    def _close(self) -> None:
        """A stream that ended before this would pass the upstream's raw bytes to the client."""
        self._take = _ignore
        self._wire.hang_up()
        self._transport.close()


def _ignore(_message: bytes) -> None:
    """Nothing that comes now matters."""


class _Nobody:
    """Where a transport was."""

    congested = False

    def send(self, message: bytes, mark: int) -> None:
        """Nobody reads it."""

    def close(self) -> None:
        """It is."""


_NOBODY = _Nobody()


class _Request:
    """The client's request as it comes in."""

    def __init__(self, trace: Mapping[str, str]) -> None:
        self._trace = trace
        self.headers: dict[str, str] = {}
        self._connection = 0
        self._head_at = 0.0
        self._unix_time = 0.0
        # Joined once: what grows is copied again and again, megabytes at a time.
        self._body: list[bytes] = []
        self._size = 0

    def begin(self, message: ProcessingRequest, clock: Clock) -> None:
        """The head has come."""
        self._head_at, self._unix_time = clock.monotonic(), clock.unix()
        self.headers = messages.headers_of(message.request_headers.headers)
        if self._trace:
            # What the client has sent is the parent of Envoy's part, whose child this is.
            self.headers = {name: self.headers[name] for name in self.headers if name not in TRACE_HEADERS}
            self.headers.update(self._trace)
        self._connection = messages.connection_of(message)

    def add(self, message: ProcessingRequest, limit: int) -> bool:
        """More of the request; whether it is whole. Of a body above ``limit`` bytes only the size is kept."""
        if not message.HasField("request_body"):
            return bool(message.HasField("request_trailers"))
        # Each look at the field makes a copy.
        piece = message.request_body.body
        self._size += len(piece)
        if self._size <= limit:
            self._body.append(piece)
        return bool(message.request_body.end_of_stream)

    def complete(self, at: float) -> RequestComplete:
        """The whole request."""
        body = b"".join(self._body)
        self._body.clear()
        return RequestComplete(self.headers, body, self._size, self._head_at, self._unix_time, at, self._connection)
