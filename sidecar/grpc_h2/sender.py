"""The sending half of a connection: what leaves, in which order, and how far the peer's windows reach.

Source: RFC 9113, section 5.2.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic

from sidecar.grpc_h2.faults import ConnectionFault
from sidecar.grpc_h2.frames import DEFAULT_FRAME_SIZE, DEFAULT_WINDOW, MAX_WINDOW, ErrorCode, header_frames
from sidecar.grpc_h2.headers import NO_TABLE
from sidecar.grpc_h2.stream import S, Stream

if TYPE_CHECKING:
    from sidecar.grpc_h2.call import Call

# Of what waits for windows, so much goes into one write: a call with megabytes to send must not hold up the others.
_WAITING_BYTES_PER_WRITE = 256 * 1024


class Sender(Generic[S]):
    """What the calls of one connection share to send. Its attributes are plain because each message reads them."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """``wake`` asks for :meth:`output` to be taken, some time soon; it may be called again before that."""
        self.frames: list[bytes] = []
        """Frames that the windows have let out, for the next write."""
        self.marks: list[tuple[Call, int | None]] = []
        """What the calls are told once ``frames`` have been written: a mark, or that the call is over (``None``)."""
        self.window = DEFAULT_WINDOW
        self.initial_window = DEFAULT_WINDOW
        self.calls: dict[int, S] = {}
        """The calls under way, by their streams."""
        self.paused = False
        """Whether the socket takes no more."""
        self.reading = False
        """Whether the output will be taken without a wake-up, because the peer's bytes are being read."""
        self.idle_frames = 0
        """Frames of the peer since the last message, of either side."""
        self.max_streams = MAX_WINDOW
        """How many streams the peer lets us have at a time; until it says so, as many as it likes."""
        self.wake = wake
        self._waiting: OrderedDict[Stream, None] = OrderedDict()
        self._table_given_up = False
        self._written: list[tuple[Call, int | None]] = []

    def put(self, data: bytes) -> None:
        """Send frames that no window holds back."""
        self.frames.append(data)
        if not self.reading:
            self.wake()

    def headers(self, stream: int, block: bytes, *, end: bool) -> None:
        """Send a header block; ``end`` ends our half of the stream."""
        if not self._table_given_up:
            self._table_given_up = True
            block = NO_TABLE + block
        self.put(header_frames(stream, block, end=end))

    def wait(self, call: Stream) -> None:
        """``call`` has something that is to be sent as soon as the windows let it."""
        self._waiting[call] = None
        if not self.reading:
            self.wake()

    def forget(self, call: Stream) -> None:
        """``call`` has ended."""
        self.calls.pop(call.stream, None)
        self._waiting.pop(call, None)

    def open_window(self, increment: int) -> None:
        """The peer takes more on the connection.

        Raises:
            ConnectionFault: that is more than a window can be.
        """
        self.window += increment
        if self.window > MAX_WINDOW:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "the connection's window is too large")

    def set_initial_window(self, size: int) -> None:
        """The peer has changed the size with which windows of streams begin; it may be smaller than what is in use.

        Raises:
            ConnectionFault: a stream's window becomes more than a window can be.
        """
        change, self.initial_window = size - self.initial_window, size
        for call in self.calls.values():
            if not call.open_window(change):
                raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "a stream's window is too large")

    @property
    def has_output(self) -> bool:
        """Whether :meth:`output` would give something."""
        return bool(self.frames) or (bool(self._waiting) and self.window > 0)

    def output(self) -> bytes:
        """What is to be written now; :meth:`handed_over` tells that it was."""
        if self._waiting:
            self._let_out()
        data = b"".join(self.frames)
        self.frames.clear()
        self._written, self.marks = self._written + self.marks, []
        return data

    def handed_over(self) -> None:
        """Tell the calls what of theirs has been written."""
        written, self._written = self._written, []
        for call, mark in written:
            if mark is None:
                call.over()
                continue
            try:
                call.receiver.handed(mark)
            except Exception:
                call.fail()

    def lost(self) -> None:
        """The connection has ended: so have its calls, and nothing more is written."""
        ending: list[Stream] = [*self.calls.values()]
        ending += (call for call, mark in (*self._written, *self.marks) if mark is None)
        self.calls.clear()
        self._waiting.clear()
        self.frames.clear()
        self.marks, self._written = [], []
        for call in ending:
            call.over()

    def _let_out(self) -> None:
        """Move what waits into ``frames`` as far as the windows go, a frame of each call in turn."""
        budget = _WAITING_BYTES_PER_WRITE
        while self._waiting and self.window > 0 and budget > 0:
            call, _ = self._waiting.popitem(last=False)
            size = call.let_out(min(DEFAULT_FRAME_SIZE, self.window))
            self.window -= size
            budget -= size
