"""A gRPC server on a Unix socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.protocol import ServerProtocol
from sidecar.grpc_h2.receiver import Methods

# A client that was connecting meanwhile is told a little later.
_LATE_SECONDS = 1.0


class Server:
    """The listening socket and its connections. Who may connect is a matter of the socket's directory."""

    def __init__(self, listener: asyncio.AbstractServer, protocols: set[ServerProtocol]) -> None:
        self._listener = listener
        self._protocols = protocols

    @classmethod
    async def listen(cls, socket: Path, methods: Methods, limits: Limits | None = None) -> Server:
        """Serve ``methods`` on ``socket``, which must not exist.

        Raises:
            OSError: the socket cannot be made.
        """
        limits = limits or Limits()
        protocols: set[ServerProtocol] = set()
        listener = await asyncio.get_running_loop().create_unix_server(
            lambda: ServerProtocol(methods, limits, protocols), str(socket)
        )
        return cls(listener, protocols)

    async def retire(self) -> None:
        """Ask all clients to make further calls elsewhere; returns when all have closed their connections."""
        while True:
            for protocol in list(self._protocols):
                protocol.retire()
            await asyncio.sleep(_LATE_SECONDS)
            if not self._protocols:
                return

    async def close(self, seconds: float) -> None:
        """Take no more calls, give those under way ``seconds`` to end, and cut off the rest."""
        self._listener.close()
        for protocol in list(self._protocols):
            protocol.leave()
        if self._protocols:
            await asyncio.wait([protocol.closed for protocol in self._protocols], timeout=seconds)
        for protocol in list(self._protocols):
            protocol.abort()
