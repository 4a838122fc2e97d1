"""The ext_proc service over our own gRPC server: one call is one session, driven from where its bytes are read."""

from __future__ import annotations

from pathlib import Path

from sidecar.extproc.sessions import Sessions
from sidecar.extproc.transport.serving import MAX_MESSAGE_BYTES, UnaryMethods
from sidecar.grpc_h2 import Call, Health, Limits, Method, Server, unary

METHOD = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"


async def listen(socket: Path, sessions: Sessions, others: UnaryMethods) -> Http2Service:
    """Serve ``sessions`` on ``socket``, and the methods of ``others``.

    Raises:
        OSError: the socket cannot be made.
    """
    health = Health()
    beside = {path: unary(answer) for path, answer in others.items()}
    methods = {METHOD: process(sessions), **health.methods, **beside}
    return Http2Service(await Server.listen(socket, methods, Limits(max_message_bytes=MAX_MESSAGE_BYTES)), health)


def process(sessions: Sessions) -> Method:
    """The one method of the service."""
    return lambda call: _Stream(call, sessions)


class Http2Service:
    """The server and its health."""

    def __init__(self, server: Server, health: Health) -> None:
        self._server = server
        self._health = health

    async def refuse(self) -> None:
        """Say NOT_SERVING from now on."""
        self._health.serving = False

    async def retire(self) -> None:
        """Have Envoy open further streams on new connections; returns when it has closed those that it has."""
        await self._server.retire()

    async def close(self, seconds: float) -> None:
        """Let the streams end that can, and cut off the others."""
        await self._server.close(seconds)


class _Stream:
    """The transport of one session, and the receiver of its call.

    A message has been handed over when it has been written to a socket that takes more. What waits for Envoy's windows
    or for a full socket does not count.
    """

    __slots__ = ("_call", "_delivered", "_session", "_sessions", "close", "drained", "received", "send")

    def __init__(self, call: Call, sessions: Sessions) -> None:
        """Raises ``KeyError`` where the route names no known surface or wire."""
        # An early head ends Envoy's retry window for the stream.
        call.start()
        self._call = call
        self._sessions = sessions
        # Once per token: what would only pass on is left out.
        self.send = call.send
        self.close = call.finish
        self._session = sessions.open(self, call.metadata)
        self.received = self._session.receive
        self.drained = self._session.drained
        self._delivered = self._session.delivered

    @property
    def congested(self) -> bool:
        """Whether what was sent earlier still waits."""
        return self._call.congested

    def handed(self, mark: int) -> None:
        """A message has been written."""
        self._delivered.cell[0] = mark

    def half_closed(self) -> None:
        """Envoy needs nothing more: neither do we."""
        self._call.finish()

    def closed(self) -> None:
        """The stream is over."""
        self._sessions.close(self._session)
