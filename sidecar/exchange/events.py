"""What can happen to an exchange. Times are seconds on a monotonic clock that the caller reads."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sidecar.backends.triton.frames import GrpcStatus
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError

if TYPE_CHECKING:
    from sidecar.exchange.asks import Ask


@dataclass(frozen=True, slots=True)
class RequestComplete:
    """The client's whole request has come.

    ``headers`` are lower-case. ``body_bytes`` is the size of the body; of one that is larger than any model takes,
    ``body`` holds only a part. ``head_at`` is when its head came, ``unix_time`` the wall clock then (seconds), ``at``
    when its end came. ``connection`` is the number of the connection that it came by; 0 where Envoy has not told it.
    """

    headers: Mapping[str, str]
    body: bytes
    body_bytes: int
    head_at: float
    unix_time: float
    at: float
    connection: int = 0

    @property
    def caller(self) -> Caller:
        """On whose behalf it is, as far as authentication has told."""
        return Caller.of(self.headers)

    @property
    def client(self) -> Hashable:
        """With whom it takes turns: its organization, or else its key, or else its connection."""
        caller = self.caller
        return caller.organization or caller.key or self.connection


@dataclass(frozen=True, slots=True)
class Answered:
    """What an ask has come to: its result, or why there is none."""

    ask: Ask[Any]
    result: object | ApiError
    at: float


@dataclass(frozen=True, slots=True)
class UpstreamHead:
    """The head of the upstream's answer has come, of a call whose host is not Triton's; names are lower-case."""

    status: int
    headers: Mapping[str, str]
    at: float


@dataclass(frozen=True, slots=True)
class UpstreamBytes:
    """Bytes of the upstream's answer, split anywhere. There may be one for every token: see ``Exchange.upstream``."""

    data: bytes
    at: float


@dataclass(frozen=True, slots=True)
class UpstreamEnd:
    """The upstream's answer has ended.

    ``whole`` is whether the wire's framing ended as it should; ``http_status`` the status of its head, if one came;
    ``grpc`` the status outside the body, if one was sent.
    """

    whole: bool
    http_status: int | None
    grpc: GrpcStatus | None
    at: float


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""

    at: float


@dataclass(frozen=True, slots=True)
class ClientGone:
    """The client has left, or Envoy gave the exchange up."""


@dataclass(frozen=True, slots=True)
class Abort:
    """The exchange must end now, with this error."""

    error: ApiError


Event = RequestComplete | Answered | UpstreamHead | UpstreamBytes | UpstreamEnd | Tick | ClientGone | Abort
