"""What can happen to an exchange. Times are seconds on a monotonic clock that the caller reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidecar.backends.triton.frames import GrpcStatus
from sidecar.images.image import Image
from sidecar.responses.errors import ApiError


@dataclass(frozen=True, slots=True)
class RequestComplete:
    """The client's whole request has come.

    ``headers`` are lower-case. ``body_bytes`` is the size of the body; of one that is larger than any model takes,
    ``body`` holds only a part. ``head_at`` is when its head came, ``unix_time`` the wall clock then (seconds).
    """

    headers: Mapping[str, str]
    body: bytes
    body_bytes: int
    head_at: float
    unix_time: float


@dataclass(frozen=True, slots=True)
class ImagesFetched:
    """The images that ``FetchImages`` asked for, in its order; or why one of them cannot be had."""

    images: Sequence[Image] | ApiError
    at: float


@dataclass(frozen=True, slots=True)
class UpstreamBytes:
    """Bytes of Triton's answer: gRPC or gRPC-Web frames, split anywhere."""

    data: bytes
    at: float


@dataclass(frozen=True, slots=True)
class UpstreamEnd:
    """Triton's answer has ended.

    ``whole`` is whether the wire's framing ended as it should; ``http_status`` the status of its head, if one came;
    ``grpc`` the status outside the body, if one was sent.
    """

    whole: bool
    http_status: int | None
    grpc: GrpcStatus | None
    at: float


@dataclass(frozen=True, slots=True)
class ClientGone:
    """The client has left, or Envoy gave the exchange up."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""

    at: float


@dataclass(frozen=True, slots=True)
class Abort:
    """The exchange must end now, with this error."""

    error: ApiError


Event = RequestComplete | ImagesFetched | UpstreamBytes | UpstreamEnd | ClientGone | Tick | Abort
