"""The ext_proc service over grpc.aio: one RPC is one session."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from sidecar.exchange.delivered import Delivered
from sidecar.extproc.session import Session
from sidecar.extproc.sessions import Sessions
from sidecar.extproc.transport.serving import MAX_MESSAGE_BYTES, UnaryMethods

_SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
# More than any request may take.
_LONGEST_STREAM_SECONDS = 3600.0


async def listen(socket: Path, sessions: Sessions, others: UnaryMethods) -> GrpcAioService:
    """Serve ``sessions`` on ``socket``, and the methods of ``others``."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)])
    # Without serializers: messages come and go as bytes.
    process = grpc.stream_stream_rpc_method_handler(ExtProcService(sessions).process)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(_SERVICE, {"Process": process})])
    for path, answer in others.items():
        service, _, method = path[1:].partition("/")
        handler = grpc.unary_unary_rpc_method_handler(_without_context(answer))
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {method: handler})])
    set_health = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(set_health, server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    await set_health.set("", health_pb2.HealthCheckResponse.SERVING)
    return GrpcAioService(server, set_health)


def _without_context(answer: Callable[[bytes], Awaitable[bytes]]) -> Callable[[bytes, object], Awaitable[bytes]]:
    async def handle(message: bytes, _context: object) -> bytes:
        return await answer(message)

    return handle


class GrpcAioService:
    """The server and its health."""

    def __init__(self, server: grpc.aio.Server, set_health: health.aio.HealthServicer) -> None:
        self._server = server
        self._health = set_health

    async def refuse(self) -> None:
        """Say NOT_SERVING from now on."""
        await self._health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)

    async def retire(self) -> None:
        """Have Envoy open further streams on new connections; returns when those under way have ended."""
        await self._server.stop(_LONGEST_STREAM_SECONDS)

    async def close(self, seconds: float) -> None:
        """Stop the server, which then cuts off the streams."""
        # A session has ended when its last words have been given to gRPC, which may not have written them yet.
        await asyncio.sleep(seconds)
        # It waits for an Envoy that does not read.
        await asyncio.wait({asyncio.ensure_future(self._server.stop(0))}, timeout=seconds)


class ExtProcService:
    """The one method of the service."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def process(self, _requests: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """Serve one stream until Envoy needs nothing more, or has ended it."""
        # An early head ends Envoy's retry window for the stream.
        await context.send_initial_metadata(())
        metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        stream = _Stream(context)
        session = self._sessions.open(stream, metadata)
        try:
            await stream.carry(session)
        finally:
            self._sessions.close(session)


class _Stream:
    """The transport of one session.

    What is sent while a message is handled is written before the next one is read: nothing may pile up here while Envoy
    does not read. What is sent in between, by a tick or an ask, is written by a task of its own.

    A message has been handed over when gRPC has taken it, within the window that Envoy grants. What waits for that, or
    is given up while it waits, does not count.
    """

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        self._context = context
        self._session: Session | None = None
        self._delivered = Delivered()
        self._unsent = deque[bytes]()
        self._marks = deque[int]()
        self._writing = asyncio.Lock()
        self._handling = False
        self._closing = False
        self._flushes = set[asyncio.Task[None]]()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def congested(self) -> bool:
        return self._writing.locked()

    def send(self, message: bytes, mark: int) -> None:
        self._unsent.append(message)
        self._marks.append(mark)
        self._flush_soon()

    def close(self) -> None:
        self._closing = True
        self._flush_soon()

    async def carry(self, session: Session) -> None:
        """Push messages into ``session`` until either side has ended the stream.

        Raises:
            asyncio.CancelledError: Envoy has given the stream up.
        """
        self._session, self._delivered = session, session.delivered
        reader = asyncio.create_task(self._read(session))
        try:
            await self._over
        finally:
            self._end()
            for task in (reader, *self._flushes):
                task.cancel()

    async def _read(self, session: Session) -> None:
        try:
            while (message := await self._context.read()) is not grpc.aio.EOF:
                self._handling = True
                session.receive(message)
                self._handling = False
                await self._flush()
        except grpc.aio.BaseError:
            # The stream has broken; the session is told as of any other end.
            pass
        finally:
            self._end()

    def _flush_soon(self) -> None:
        if not self._handling and not self._over.done():
            task = asyncio.create_task(self._flush())
            self._flushes.add(task)
            task.add_done_callback(self._flushes.discard)

    async def _flush(self) -> None:
        async with self._writing:
            try:
                while self._unsent:
                    await self._context.write(self._unsent.popleft())
                    if mark := self._marks.popleft():
                        self._delivered.cell[0] = mark
            except grpc.aio.BaseError:
                self._closing = True
        if self._closing:
            self._end()
        elif self._session is not None:
            self._session.drained()

    def _end(self) -> None:
        if not self._over.done():
            self._over.set_result(None)
