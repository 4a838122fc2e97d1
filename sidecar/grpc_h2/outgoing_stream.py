"""The stream of a call that we make.

Source: RFC 9113, sections 5.1 and 8.1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sidecar.grpc_h2.faults import StreamFault
from sidecar.grpc_h2.frames import DEFAULT_FRAME_SIZE, END_STREAM, ErrorCode, Kind, frame, rst_stream
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.outgoing import Outgoing
from sidecar.grpc_h2.sender import Sender
from sidecar.grpc_h2.stream import Stream

_log = logging.getLogger(__name__)


class OutgoingStream(Stream):
    """What has been sent and received of one call on one connection."""

    __slots__ = ("_answer", "_call", "_sent", "_whole", "begun", "receive")

    def __init__(self, call: Outgoing, stream: int, sender: Sender[OutgoingStream], limits: Limits) -> None:
        super().__init__(stream, sender, limits)
        self.begun = False
        """Whether the response's head has come."""
        self.receive: Callable[[bytes], None]
        """Takes more of the response's body, once its head has come."""
        self._answer = call.answer
        self._call = call
        self._sent = 0
        # Whether all of the request has been sent.
        self._whole = False
        call.opened(self)

    def begin(self) -> None:
        """Send the request, as far as the windows go."""
        sender, body = self.sender, self._call.body
        sender.headers(self.stream, self._call.block, end=False)
        if len(body) > min(self._window, sender.window, DEFAULT_FRAME_SIZE):
            sender.wait(self)
            return
        self._window -= len(body)
        sender.window -= len(body)
        self._whole = True
        sender.put(frame(Kind.DATA, END_STREAM, self.stream, body))

    @property
    def _waits(self) -> bool:
        return not self._whole

    @property
    def _takes_no_more(self) -> bool:
        return self._answer.congested

    def let_out(self, most: int) -> int:
        """Send at most ``most`` bytes of the request, as one frame; how many were sent."""
        if self._window <= 0:
            # The peer has made it smaller meanwhile.
            return 0
        body, start = self._call.body, self._sent
        self._sent = min(len(body), start + min(most, self._window))
        self._whole = self._sent == len(body)
        self._window -= self._sent - start
        flags = END_STREAM if self._whole else 0
        self.sender.frames.append(frame(Kind.DATA, flags, self.stream, body[start : self._sent]))
        if not self._whole and self._window > 0:
            self.sender.wait(self)
        return self._sent - start

    def take_headers(self, fields: Mapping[str, str], ends_stream: bool) -> None:
        """A header block of the response.

        Raises:
            StreamFault: it may not come now.
        """
        status = fields.get(":status")
        if self.begun:
            if status is not None or not ends_stream:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "headers in the middle of a response")
            self.finish(fields)
        elif status is None:
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a response without a status")
        elif not status.startswith("1"):
            self._begin_answer(fields)
            if ends_stream:
                self.finish(fields)
        elif ends_stream:
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a response that is but informational")

    def _begin_answer(self, head: Mapping[str, str]) -> None:
        self.begun = True
        if self._whole:
            # Nobody makes this call again.
            self._call.body = b""
        try:
            self._answer.begun(head)
        except Exception:
            self.fail()
        # The connection calls it for each piece of the body.
        self.receive = self._answer.received

    def finish(self, trailers: Mapping[str, str]) -> None:
        """The response has ended as it should."""
        if self._leave():
            if not self._whole:
                # The rest of the request is not wanted.
                self.sender.put(rst_stream(self.stream, ErrorCode.NO_ERROR))
            self._call.finish(trailers)

    def refused(self) -> None:
        """The server has not looked at the stream."""
        if self._leave():
            self._call.refused()

    def over(self) -> None:
        """The stream has broken."""
        if self._leave():
            self._call.finish(None)

    def cancel(self) -> None:
        """The answer is not wanted any more."""
        if self._leave():
            self.sender.put(rst_stream(self.stream, ErrorCode.CANCEL))

    def resume(self) -> None:
        """The answer takes more."""
        if not self._closed:
            self.renew_credit()

    def _leave(self) -> bool:
        """End the stream; whether it had not ended before."""
        if self._closed:
            return False
        self._closed = True
        self.sender.forget(self)
        return True

    def fail(self) -> None:
        """The answer has raised an exception, which is being handled."""
        _log.exception("a call's answer failed")
        self._call.cancel()
