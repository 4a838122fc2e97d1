"""The asyncio edge of a connection: it reads, and writes once for all that was read.

A server holds back a client that does not read: while the socket takes no more, nothing is read from it either, so that
no output can pile up. A client reads on: what it sends waits with the calls, and the answers are what it is there for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from sidecar.grpc_h2.client_connection import ClientConnection
from sidecar.grpc_h2.connection import Connection
from sidecar.grpc_h2.endpoint import Endpoint
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.receiver import Methods

# Bytes that wait in the process for a socket that is full. One turn of the loop rarely makes so many.
_HIGH_WATER = 1024 * 1024


class _Edge(asyncio.Protocol):
    """What both ends have in common."""

    def __init__(self, connection: Endpoint[Any]) -> None:
        self._endpoint = connection
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done when the connection is."""
        self._transport: asyncio.Transport
        self._paused = False
        self._flush_is_due = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say what we allow."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Take what the peer has sent, and write what comes of it."""
        self._endpoint.receive(data)
        self._flush()

    def pause_writing(self) -> None:
        """The socket is full."""
        self._pause(True)

    def resume_writing(self) -> None:
        """The socket takes more."""
        self._pause(False)
        if not self._transport.is_closing():
            self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._endpoint.lost()
        self.closed.set_result(None)

    def abort(self) -> None:
        """Close the connection now, whatever is under way or unwritten."""
        self._transport.abort()

    def _pause(self, paused: bool) -> None:
        self._paused = paused
        self._endpoint.pause(paused)

    def _wake(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush_if_due)

    def _flush_if_due(self) -> None:
        self._flush_is_due = False
        self._flush()

    def _flush(self) -> None:
        """Write once; where that left something for fairness, go on in the loop's next turn."""
        endpoint = self._endpoint
        if self._paused or self._transport.is_closing():
            return
        output = endpoint.output()
        if output:
            self._transport.write(output)
            endpoint.handed_over()
        if endpoint.has_output:
            self._wake()
        elif endpoint.terminated:
            self._transport.close()


class ServerProtocol(_Edge):
    """A connection that a client has made; it stands in ``open_protocols`` while it is open."""

    def __init__(self, methods: Methods, limits: Limits, open_protocols: set[ServerProtocol]) -> None:
        self._connection = Connection(methods, limits, self._wake)
        super().__init__(self._connection)
        self._open_protocols = open_protocols

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say what we allow."""
        self._open_protocols.add(self)
        super().connection_made(transport)

    def pause_writing(self) -> None:
        """The socket is full."""
        super().pause_writing()
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The socket takes more."""
        if not self._transport.is_closing():
            self._transport.resume_reading()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._open_protocols.discard(self)
        super().connection_lost(exc)

    def retire(self) -> None:
        """Ask the client to make further calls elsewhere."""
        self._connection.retire()
        self._wake()

    def leave(self) -> None:
        """Take no more calls, and close the connection when those under way have ended."""
        self._connection.leave()
        self._wake()


class ClientProtocol(_Edge):
    """A connection that we have made. ``changed`` is called when there may be room for another call, or no more."""

    def __init__(self, limits: Limits, changed: Callable[[], None]) -> None:
        self.connection = ClientConnection(limits, self._wake)
        super().__init__(self.connection)
        self._changed = changed
        self.greeted: asyncio.Future[None] = self._loop.create_future()
        """Done when the server has said what it takes, or the connection is closed."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        super().connection_lost(exc)
        self._tell()

    def leave(self) -> None:
        """Make no more calls, and close the connection when those under way have ended."""
        self.connection.leave()
        self._wake()

    def _flush(self) -> None:
        super()._flush()
        self._tell()

    def _tell(self) -> None:
        if not self.greeted.done() and self.connection.is_greeted:
            self.greeted.set_result(None)
        self._changed()
