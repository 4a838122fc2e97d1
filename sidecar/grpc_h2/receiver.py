"""What an application is to a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sidecar.grpc_h2.call import Call


class Receiver(Protocol):
    """Is told what happens to one call, from within the event loop; none of its methods may wait.

    It may answer at once, from inside these methods, or at any later time. An exception of it ends the call with
    status ``INTERNAL``.
    """

    def received(self, message: bytes) -> None:
        """The peer's next message."""

    def half_closed(self) -> None:
        """The peer has sent its last message."""

    def handed(self, mark: int) -> None:
        """The message sent with ``mark``, and all before it, have been written to a socket that takes more."""

    def drained(self) -> None:
        """The call was congested, and is no more."""

    def closed(self) -> None:
        """The call is over, well or not; nothing more is told, and nothing more can be sent. It comes once."""


class Ignoring:
    """A receiver for calls that nobody takes."""

    def received(self, message: bytes) -> None:
        """Nothing is made of it."""

    def half_closed(self) -> None:
        """It was not waited for."""

    def handed(self, mark: int) -> None:
        """Nothing was marked."""

    def drained(self) -> None:
        """Nothing waited."""

    def closed(self) -> None:
        """Nothing was begun."""


Method = Callable[["Call"], Receiver]
"""Begins a call of one method; an exception of it ends the call with status ``INTERNAL``."""
Methods = Mapping[str, Method]
"""The methods of a server by their paths, ``/package.Service/Method``."""
