"""A stream as the two halves of its connection see it, whichever end opened it.

Source: RFC 9113, sections 5.1 and 5.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from sidecar.grpc_h2.faults import StreamFault
from sidecar.grpc_h2.frames import MAX_WINDOW, ErrorCode, window_update
from sidecar.grpc_h2.limits import Limits

if TYPE_CHECKING:
    from sidecar.grpc_h2.sender import Sender


class Stream(ABC):
    """What one stream may still send and receive. Its attributes are plain because each message reads them."""

    __slots__ = ("_closed", "_limits", "_window", "credit", "sender", "stream")

    def __init__(self, stream: int, sender: Sender[Any], limits: Limits) -> None:
        self.stream = stream
        self.sender = sender
        self.credit = limits.stream_window
        self._limits = limits
        self._window = sender.initial_window
        self._closed = False

    @property
    @abstractmethod
    def _waits(self) -> bool:
        """Whether something of the stream waits for the peer's windows."""

    @property
    @abstractmethod
    def _takes_no_more(self) -> bool:
        """Whether the peer is to send nothing more, for now or for good."""

    @abstractmethod
    def let_out(self, most: int) -> int:
        """Send at most ``most`` bytes of what waits, as one frame; how many were sent."""

    @abstractmethod
    def over(self) -> None:
        """The stream has ended, in whatever way."""

    def open_window(self, change: int) -> bool:
        """The peer takes ``change`` bytes more on this stream, or fewer; whether that is a window's size."""
        self._window += change
        if self._window > 0 and self._waits:
            self.sender.wait(self)
        return self._window <= MAX_WINDOW

    def renew_credit(self) -> None:
        """Let the peer send more, if it has used up half, and unless nothing more is taken.

        Raises:
            StreamFault: it has sent more than it was allowed.
        """
        if self.credit < 0:
            raise StreamFault(ErrorCode.FLOW_CONTROL_ERROR, "more than the stream's window")
        if self.credit < self._limits.stream_window >> 1 and not self._takes_no_more:
            increment, self.credit = self._limits.stream_window - self.credit, self._limits.stream_window
            self.sender.put(window_update(self.stream, increment))


S = TypeVar("S", bound=Stream)
