"""A gRPC client of one server: many calls at a time on few connections, which are kept.

A call is made on a connection that has room, and else on a new one. A server that wants no more calls on a connection
says so (GOAWAY), and those that it has not looked at are made on another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from sidecar.grpc_h2.headers import grpc_request
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.outgoing import Answer, Outgoing
from sidecar.grpc_h2.protocol import ClientProtocol

# Further calls wait for those under way. Servers that limit the calls of a connection allow a hundred and more.
_MOST_CONNECTIONS = 16
_CONNECT_SECONDS = 3.0


class Client:
    """The connections to one server, and the calls that wait for one. To be used from one event loop."""

    def __init__(self, server: Path | tuple[str, int], limits: Limits | None = None) -> None:
        """``server`` is the path of its Unix socket, or its host and port."""
        self._server = server
        self._authority = "localhost" if isinstance(server, Path) else f"{server[0]}:{server[1]}"
        self._limits = limits or Limits()
        self._protocols: list[ClientProtocol] = []
        self._waiting = deque[Outgoing]()
        self._connecting: asyncio.Task[None] | None = None

    def call(self, path: str, metadata: Mapping[str, str], body: bytes, answer: Answer) -> Outgoing:
        """Call the method ``path``, with ``body`` as all messages of the request, each in its frame.

        What comes of it, and be it that there is no connection, ``answer`` is told later, from the event loop.
        """
        call = Outgoing(grpc_request(path, self._authority, metadata), body, answer, self._make)
        self._make(call)
        return call

    async def close(self) -> None:
        """Break off what is under way, and close the connections."""
        if self._connecting is not None:
            self._connecting.cancel()
        for protocol in list(self._protocols):
            protocol.abort()
        if self._protocols:
            await asyncio.wait([protocol.closed for protocol in self._protocols])

    def _make(self, call: Outgoing) -> None:
        protocol = self._with_room()
        if protocol is not None and not self._waiting:
            protocol.connection.open(call)
            return
        self._waiting.append(call)
        self._connect_if_needed()

    def _with_room(self) -> ClientProtocol | None:
        return next((protocol for protocol in self._protocols if protocol.connection.has_room), None)

    def _changed(self) -> None:
        """A connection may have got room, or has gone: make the calls that wait, as far as that goes."""
        if not self._waiting:
            return
        while self._waiting and (protocol := self._with_room()) is not None:
            call = self._waiting.popleft()
            if not call.cancelled:
                protocol.connection.open(call)
        self._connect_if_needed()

    def _connect_if_needed(self) -> None:
        taking = sum(protocol.connection.is_open for protocol in self._protocols)
        if self._waiting and self._connecting is None and taking < _MOST_CONNECTIONS:
            self._connecting = asyncio.create_task(self._connect())

    async def _connect(self) -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._open()
        self._connecting = None
        if self._with_room() is not None:
            self._changed()
        elif not any(protocol.connection.is_open for protocol in self._protocols):
            self._give_up()
        # Else those that are full may get room.

    async def _open(self) -> None:
        """Add a connection, and wait until calls may be made on it, or never will."""
        loop, server = asyncio.get_running_loop(), self._server
        make = partial(ClientProtocol, self._limits, self._changed)
        if isinstance(server, Path):
            _, protocol = await loop.create_unix_connection(make, str(server))
        else:
            _, protocol = await loop.create_connection(make, *server)
        self._protocols.append(protocol)
        protocol.closed.add_done_callback(lambda _: self._protocols.remove(protocol))
        try:
            await protocol.greeted
        except asyncio.CancelledError:
            # It took too long.
            protocol.leave()
            raise

    def _give_up(self) -> None:
        waiting = list(self._waiting)
        self._waiting.clear()
        for call in waiting:
            call.finish(None)
