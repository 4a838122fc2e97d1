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


Frame = bytes
"""One whole frame: its flag byte, its length and its payload, as :func:`payload_of` gives it."""


class GrpcStatus(NamedTuple):
    """The outcome of a call as its trailers tell it; ``code`` is a gRPC status code (0 is OK)."""

    code: int
    message: str


def frame(payload: bytes) -> Frame:
    """``payload`` as one uncompressed message frame."""
    return b"\x00" + len(payload).to_bytes(4, "big") + payload


def payload_of(frame: Frame) -> bytes:
    """What a frame holds."""
    return frame[_PREFIX_LENGTH:]


class FrameReader:
    """Splits a byte stream into frames; any split of the bytes gives the same frames."""

    def __init__(self) -> None:
        self.rest = bytearray()
        """The beginning of a frame at the end of the bytes so far."""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that ``data`` completes.

        Raises:
            FrameError: a frame is marked as compressed, which no request of ours allows.
        """
        # Nearly every read holds whole frames: then nothing is copied into the buffer.
        source: bytes | bytearray = data
        if self.rest:
            self.rest += data
            source = self.rest
        frames: list[Frame] = []
        start, end = 0, len(source)
        while end - start >= _PREFIX_LENGTH:
            after = start + _PREFIX_LENGTH + int.from_bytes(source[start + 1 : start + _PREFIX_LENGTH], "big")
            if after > end:
                break
            if source[start] & _COMPRESSED_FLAG:
                raise FrameError("a compressed frame")
            frames.append(bytes(source[start:after]))
            start = after
        if source is self.rest:
            del self.rest[:start]
        elif start < end:
            self.rest += data[start:]
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
