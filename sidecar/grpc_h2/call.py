"""One gRPC call: what an application sends on it, and the state of its stream.

Source: the gRPC over HTTP/2 protocol page; RFC 9113, section 5.1.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sidecar.grpc_h2.backlog import Backlog
from sidecar.grpc_h2.faults import CallFault
from sidecar.grpc_h2.frames import DEFAULT_FRAME_SIZE, MESSAGE_HEAD, ErrorCode, Kind, frame, rst_stream
from sidecar.grpc_h2.headers import response_head, response_trailers
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.receiver import Ignoring, Receiver
from sidecar.grpc_h2.sender import Sender
from sidecar.grpc_h2.status import Status
from sidecar.grpc_h2.stream import Stream
from sidecar.grpc_h2.unframer import Unframer

_HEAD = response_head()
_NOBODY = Ignoring()
_DATA = int(Kind.DATA)

_log = logging.getLogger(__name__)


class Call(Stream):
    """A call under way.

    An application uses :meth:`start`, :meth:`send`, :meth:`finish` and the properties, from the event loop's thread;
    what follows them is the connection's.
    """

    __slots__ = (
        "_backlog",
        "_started",
        "_trailers",
        "half_closed",
        "metadata",
        "path",
        "receiver",
        "unframer",
    )

    def __init__(
        self, stream: int, path: str, metadata: Mapping[str, str], sender: Sender[Call], limits: Limits
    ) -> None:
        super().__init__(stream, sender, limits)
        self.path = path
        """The method, ``/package.Service/Method``."""
        self.metadata = metadata
        """What came with the request, by names in lower case; the values of ``-bin`` names are in base64."""
        self.receiver: Receiver = _NOBODY
        self.half_closed = False
        self.unframer: Unframer | None = None
        self._backlog: Backlog | None = None
        self._started = False
        self._trailers: bytes | None = None

    @property
    def congested(self) -> bool:
        """Whether what was sent earlier still waits for the peer to read."""
        return bool(self._backlog) or self.sender.paused

    def start(self) -> None:
        """Send the response's head now, and not only with the first message."""
        if not self._started and self._trailers is None and not self._closed:
            self._started = True
            self.sender.headers(self.stream, _HEAD, end=False)

    def send(self, message: bytes, mark: int = 0) -> None:
        """Send a message; on a call that has ended it does nothing.

        ``mark``, unless it is 0, comes back by :meth:`Receiver.handed`. A message that the peer's windows do not let
        out waits here: who goes on while the call is ``congested`` fills the memory.
        """
        if self._trailers is not None or self._closed:
            return
        if not self._started:
            self.start()
        sender = self.sender
        sender.idle_frames = 0
        length = len(message)
        size = length + 5
        if size > self._window or size > sender.window or size > DEFAULT_FRAME_SIZE or self._backlog:
            self._wait(message, mark)
            return
        self._window -= size
        sender.window -= size
        sender.frames.append(MESSAGE_HEAD.pack(size >> 8, size & 255, _DATA, 0, self.stream, 0, length))
        sender.frames.append(message)
        if mark:
            sender.marks.append((self, mark))
        if not sender.reading:
            sender.wake()

    def finish(self, status: Status = Status.OK, words: str = "") -> None:
        """End the call, after all that was sent; ``words`` tell a person why. Only the first time counts."""
        if self._trailers is not None or self._closed:
            return
        trailers = response_trailers(status, words)
        self._trailers = trailers if self._started else _HEAD + trailers
        if not self._backlog:
            self._end()

    def answer_plainly(self, block: bytes) -> None:
        """End the stream with a header block that is not gRPC's."""
        self._trailers = block
        self._end()

    def deliver(self, data: bytes) -> None:
        """The peer's data, in any split, for the receiver."""
        unframer = self.unframer or Unframer(self._limits.max_message_bytes)
        try:
            for message in unframer.feed(data):
                self.receive(message)
        except CallFault as fault:
            self.finish(fault.status, fault.words)
        self.unframer = unframer if len(unframer) else None

    def receive(self, message: bytes) -> None:
        """The peer's next message, for the receiver."""
        if self._trailers is not None:
            return
        self.sender.idle_frames = 0
        try:
            self.receiver.received(message)
        except Exception:
            self.fail()

    def half_close(self) -> None:
        """The peer has ended its half of the stream."""
        self.half_closed = True
        if self.unframer is not None:
            self.finish(Status.INTERNAL, "the request ended within a message")
        elif self._trailers is None:
            try:
                self.receiver.half_closed()
            except Exception:
                self.fail()

    @property
    def _waits(self) -> bool:
        return bool(self._backlog)

    @property
    def _takes_no_more(self) -> bool:
        # Who does not read what we send may send no more.
        return bool(self._backlog) or self.half_closed

    def let_out(self, most: int) -> int:
        """Send at most ``most`` bytes of what waits, as one frame; how many were sent."""
        assert self._backlog is not None
        if self._window <= 0:
            # The peer has made it smaller meanwhile.
            return 0
        data, marks = self._backlog.take(min(most, self._window))
        self._window -= len(data)
        self.sender.frames.append(frame(Kind.DATA, 0, self.stream, data))
        self.sender.marks += [(self, mark) for mark in marks]
        if self._backlog:
            if self._window > 0:
                self.sender.wait(self)
        elif self._trailers is not None:
            self._end()
        else:
            self.renew_credit()
            self.drained()
        return len(data)

    def drained(self) -> None:
        """Tell the receiver that the call is congested no more, if so."""
        if self._trailers is None and not self.congested:
            try:
                self.receiver.drained()
            except Exception:
                self.fail()

    def over(self) -> None:
        """The call has ended, in whatever way: tell the receiver, once."""
        self.sender.forget(self)
        if not self._closed:
            self._closed = True
            self._backlog = None
            try:
                self.receiver.closed()
            except Exception:
                _log.exception("the end of a call of %s failed", self.path)
            # It is told nothing more, and need not wait for the garbage collector: it refers to the call.
            self.receiver = _NOBODY

    def fail(self) -> None:
        """The application has raised an exception, which is being handled."""
        _log.exception("a call of %s failed", self.path)
        self.finish(Status.INTERNAL, "internal error")

    def _wait(self, message: bytes, mark: int) -> None:
        if self._backlog is None:
            self._backlog = Backlog()
        self._backlog.add(message, mark)
        if self._window > 0:
            self.sender.wait(self)

    def _end(self) -> None:
        """Send the trailers; the call is over when they have been written."""
        assert self._trailers is not None
        self.sender.headers(self.stream, self._trailers, end=True)
        if not self.half_closed:
            # The rest of the request is not wanted (RFC 9113, section 8.1).
            self.sender.put(rst_stream(self.stream, ErrorCode.NO_ERROR))
        self.sender.marks.append((self, None))
        self.sender.forget(self)
