"""Methods with one request message and one response message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sidecar.grpc_h2.call import Call
from sidecar.grpc_h2.receiver import Ignoring, Method
from sidecar.grpc_h2.status import Status


def unary(answer: Callable[[bytes], Awaitable[bytes]]) -> Method:
    """A method that a coroutine answers, in a task of its own; it is cancelled where the client gives the call up.

    An exception ends the call with status ``INTERNAL``.
    """
    return lambda call: _Answering(call, answer)


class Unary(Ignoring):
    """Takes the one message of a call, and answers it when the request has ended."""

    def __init__(self, call: Call, answer: Callable[[Call, bytes], None]) -> None:
        """``answer`` gets the call and the request; it sends a message and finishes the call, now or later."""
        self._call = call
        self._answer = answer
        self._requests: list[bytes] = []

    def received(self, message: bytes) -> None:
        """Keep the request."""
        self._requests.append(message)
        if len(self._requests) > 1:
            self._call.finish(Status.UNIMPLEMENTED, "more than one request in a call that takes one")

    def half_closed(self) -> None:
        """Answer it."""
        if not self._requests:
            self._call.finish(Status.UNIMPLEMENTED, "no request in a call that takes one")
            return
        self._answer(self._call, self._requests[0])


class _Answering(Unary):
    """A call that a coroutine answers."""

    def __init__(self, call: Call, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        super().__init__(call, self._begin)
        self._coroutine = answer
        self._task: asyncio.Task[None] | None = None

    def _begin(self, call: Call, request: bytes) -> None:
        self._task = asyncio.create_task(self._run(call, request))

    async def _run(self, call: Call, request: bytes) -> None:
        try:
            call.send(await self._coroutine(request))
            call.finish()
        except Exception:
            call.fail()

    def closed(self) -> None:
        """Nobody waits for the answer any more."""
        if self._task is not None:
            self._task.cancel()
