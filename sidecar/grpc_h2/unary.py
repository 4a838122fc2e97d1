"""Methods with one request message and one response message."""

from __future__ import annotations

from collections.abc import Callable

from sidecar.grpc_h2.call import Call
from sidecar.grpc_h2.receiver import Ignoring
from sidecar.grpc_h2.status import Status


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
