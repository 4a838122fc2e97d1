"""What a wire does: it carries the call that an exchange asks for to the upstream, and reads what comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, NamedTuple, Protocol

from sidecar.backends.triton.frames import GrpcStatus
from sidecar.exchange.commands import CallUpstream
from sidecar.extproc import by_hand


class WireEnd(NamedTuple):
    """How the upstream's answer ended; see ``UpstreamEnd``."""

    whole: bool
    http_status: int | None
    grpc: GrpcStatus | None


class Recipient(Protocol):
    """Whom a wire hands the upstream's answer that does not come in messages of Envoy's."""

    @property
    def congested(self) -> bool:
        """Whether what came of earlier bytes still waits for Envoy to read it."""

    def upstream_head(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the head of the upstream's answer, before any bytes of it; of calls to another host than Triton's."""

    def upstream(self, data: bytes) -> None:
        """Take bytes of the upstream's answer, split anywhere."""

    def upstream_ended(self, end: WireEnd) -> None:
        """The upstream's answer has ended."""


class Wire(ABC):
    """One exchange's way to its upstream and back: holds the state of its framing. Messages are serialized."""

    body: Callable[[bytes], bytes] = staticmethod(by_hand.response_body)
    """The message with a piece of the response's body that is not the last; the bytes are not empty."""

    reaches_all: ClassVar[bool] = False
    """Whether calls can go to another host than Triton's."""

    @abstractmethod
    def call(self, call: CallUpstream, request_headers: Mapping[str, str], recipient: Recipient) -> Iterable[bytes]:
        """The messages that make the call, in place of the client's request, which had ``request_headers``."""

    @abstractmethod
    def receive(self, message: bytes) -> tuple[bytes, WireEnd | None]:
        """The bytes of the upstream's answer in a message of Envoy's, and the answer's end, where it tells that."""

    @abstractmethod
    def head(self, headers: Mapping[str, str]) -> bytes:
        """The response head for the client."""

    @abstractmethod
    def finish(self, data: bytes) -> Iterable[bytes]:
        """The last bytes of the response body and its end."""

    @abstractmethod
    def hang_up(self) -> None:
        """Nothing more of the upstream's answer is wanted; it may have ended."""

    @abstractmethod
    def drained(self) -> None:
        """The recipient is congested no more."""


class EnvoysCall(Wire):
    """A wire on which Envoy makes the call: it ends it by itself, and holds up an upstream whose client is slow."""

    def hang_up(self) -> None:
        """Envoy does, when the stream ends."""

    def drained(self) -> None:
        """Envoy notices."""
