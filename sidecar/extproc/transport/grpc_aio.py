"""The ext_proc service over grpc.aio: one RPC is one session."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import grpc
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingResponse
from envoy.service.ext_proc.v3.external_processor_pb2_grpc import ExternalProcessorServicer

from sidecar.exchange.delivered import Delivered
from sidecar.extproc.session import Session
from sidecar.extproc.sessions import Sessions


class ExtProcService(ExternalProcessorServicer):  # type: ignore[misc]
    """``envoy.service.ext_proc.v3.ExternalProcessor``."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def Process(self, _requests: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
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
        self._delivered = Delivered()
        self._unsent = deque[ProcessingResponse]()
        self._marks = deque[int]()
        self._writing = asyncio.Lock()
        self._handling = False
        self._closing = False
        self._flushes = set[asyncio.Task[None]]()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def congested(self) -> bool:
        return self._writing.locked()

    def send(self, message: ProcessingResponse, mark: int) -> None:
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
        self._delivered = session.delivered
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

    def _end(self) -> None:
        if not self._over.done():
            self._over.set_result(None)
