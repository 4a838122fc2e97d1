"""gRPC and gRPC-Web message frames: one flag byte, four bytes of length, the payload.

Source: the gRPC over HTTP/2 and gRPC-Web protocol pages. A gRPC-Web body ends with a frame whose flag has the high bit
set; its payload is the trailers as ``key:value`` lines.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

TRAILERS_FLAG = 0x80
_COMPRESSED_FLAG = 0x01
_PREFIX_LENGTH = 5


class FrameError(Exception):
    """Bytes that are not a sequence of uncompressed frames."""


Frame = tuple[int, bytes]
"""One frame: its flag byte and its payload. A plain tuple: a stream has one for each token."""


class GrpcStatus(NamedTuple):
    """The outcome of a call as its trailers tell it; ``code`` is a gRPC status code (0 is OK)."""

    code: int
    message: str


def frame(payload: bytes) -> bytes:
    """``payload`` as one uncompressed message frame."""
    return b"\x00" + len(payload).to_bytes(4, "big") + payload


class FrameReader:
    """Splits a byte stream into frames; any split of the bytes gives the same frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def partial(self) -> bool:
        """Whether the bytes so far end inside a frame."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that ``data`` completes.

        Raises:
            FrameError: a frame is marked as compressed, which no request of ours allows.
        """
        # Nearly every read holds whole frames: then nothing is copied into the buffer.
        source: bytes | bytearray = data
        if self._buffer:
            self._buffer += data
            source = self._buffer
        frames: list[Frame] = []
        start, end = 0, len(source)
        while end - start >= _PREFIX_LENGTH:
            body = start + _PREFIX_LENGTH
            after = body + int.from_bytes(source[start + 1 : body], "big")
            if after > end:
                break
            if source[start] & _COMPRESSED_FLAG:
                raise FrameError("a compressed frame")
            frames.append((source[start], bytes(source[body:after])))
            start = after
        if source is self._buffer:
            del self._buffer[:start]
        elif start < end:
            self._buffer += data[start:]
        return frames


def parse_trailers(payload: bytes) -> GrpcStatus | None:
    """The status in a gRPC-Web trailers frame, or ``None`` when it holds none."""
    lines = (line.partition(":") for line in payload.decode("latin-1").split("\r\n"))
    return status_of({name.strip().lower(): value.strip() for name, _, value in lines})


def status_of(headers: dict[str, str]) -> GrpcStatus | None:
    """The status in trailers or in the head of a trailers-only answer, or ``None`` when it holds none."""
    code = headers.get("grpc-status")
    if code is None:
        return None
    # A status that is no number is as good as UNKNOWN (2).
    return GrpcStatus(int(code) if code.isdecimal() else 2, unquote(headers.get("grpc-message", "")))
