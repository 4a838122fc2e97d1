"""One gRPC call that we make: a request, which is sent whole, and what the server answers.

Source: the gRPC over HTTP/2 protocol page; RFC 9113, section 8.7 on requests that a server has not looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sidecar.grpc_h2.outgoing_stream import OutgoingStream

# A server that refuses a stream has not looked at it: it may be asked again, but not for ever.
_MOST_TRIES = 3

_log = logging.getLogger(__name__)


class Answer(Protocol):
    """Is told what comes of one call, from within the event loop; none of its methods may wait.

    An exception of it cancels the call.
    """

    @property
    def congested(self) -> bool:
        """Whether it takes no more for now. When it does again, :meth:`Outgoing.resume` is to be called."""

    def begun(self, head: Mapping[str, str]) -> None:
        """The response's head has come: names in lower case, ``:status`` among them."""

    def received(self, data: bytes) -> None:
        """More of the response's body, in any split."""

    def ended(self, trailers: Mapping[str, str] | None) -> None:
        """The response is over, with these trailers, or the head where that was all; ``None`` where it broke off.

        It comes once, and nothing after it; after :meth:`Outgoing.cancel` nothing comes.
        """


class Outgoing:
    """A call under way, or one that waits for a connection."""

    __slots__ = ("_again", "_stream", "_tries", "answer", "block", "body", "cancelled")

    def __init__(self, block: bytes, body: bytes, answer: Answer, again: Callable[[Outgoing], None]) -> None:
        """``block`` opens the stream and ``body`` is all that follows; ``again`` has the call made once more."""
        self.block = block
        self.body = body
        self.answer = answer
        self.cancelled = False
        """Whether nobody waits for the answer."""
        self._again = again
        self._stream: OutgoingStream | None = None
        self._tries = 0

    def cancel(self) -> None:
        """Nothing more is wanted: the server is told, where it has not finished."""
        self.cancelled = True
        self.body = b""
        if self._stream is not None:
            self._stream.cancel()

    def resume(self) -> None:
        """The answer is congested no more."""
        if self._stream is not None:
            self._stream.resume()

    def opened(self, stream: OutgoingStream) -> None:
        """The call has a stream."""
        self._tries += 1
        self._stream = stream

    def refused(self) -> None:
        """The server has not looked at it: have it made again, or give it up."""
        self._stream = None
        if self._tries < _MOST_TRIES:
            self._again(self)
        else:
            self.finish(None)

    def finish(self, trailers: Mapping[str, str] | None) -> None:
        """The answer is over; ``None`` where it broke off, or none could be had."""
        self._stream = None
        self.body = b""
        if not self.cancelled:
            try:
                self.answer.ended(trailers)
            except Exception:
                _log.exception("the end of a call failed")
