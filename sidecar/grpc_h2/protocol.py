"""The asyncio edge of a connection: it reads, writes once for all that was read, and holds back a peer that does not.

While the socket takes no more, nothing is read either: a peer that does not read cannot make output pile up here.
"""

from __future__ import annotations

import asyncio
from typing import cast

from sidecar.grpc_h2.connection import Connection
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.receiver import Methods

# Bytes that wait in the process for a socket that is full. One turn of the loop rarely makes so many.
_HIGH_WATER = 1024 * 1024


class ServerProtocol(asyncio.Protocol):
    """One connection; it stands in ``open_protocols`` while it is open."""

    def __init__(self, methods: Methods, limits: Limits, open_protocols: set[ServerProtocol]) -> None:
        self._connection = Connection(methods, limits, self._wake)
        self._open_protocols = open_protocols
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
        self._open_protocols.add(self)
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Take what the peer has sent, and write what comes of it."""
        self._connection.receive(data)
        self._flush()

    def pause_writing(self) -> None:
        """The socket is full."""
        self._pause(True)
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The socket takes more."""
        self._pause(False)
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._open_protocols.discard(self)
        self._connection.lost()
        self.closed.set_result(None)

    def leave(self) -> None:
        """Take no more calls, and close the connection when those under way have ended."""
        self._connection.leave()
        self._wake()

    def abort(self) -> None:
        """Close the connection now, whatever is under way or unwritten."""
        self._transport.abort()

    def _pause(self, paused: bool) -> None:
        self._paused = paused
        self._connection.pause(paused)

    def _wake(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush_if_due)

    def _flush_if_due(self) -> None:
        self._flush_is_due = False
        self._flush()

    def _flush(self) -> None:
        """Write once; where that left something for fairness, go on in the loop's next turn."""
        connection = self._connection
        if self._paused or self._transport.is_closing():
            return
        output = connection.output()
        if output:
            self._transport.write(output)
            connection.handed_over()
        if connection.has_output:
            self._wake()
        elif connection.terminated:
            self._transport.close()
