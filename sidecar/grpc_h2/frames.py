"""Frames of HTTP/2: kinds, flags, settings and error codes, and the bytes of those that a server writes.

Source: RFC 9113, sections 4.1, 6 and 7.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client sends before its first frame (section 3.4)."""

HEAD = Struct(">HBBBL")
"""A frame's head: its payload's size over the first 24 bits (``size >> 8``, ``size & 255``), kind, flags, stream."""
MESSAGE_HEAD = Struct(">HBBBLBL")
"""The head of a DATA frame that is one whole gRPC message: the frame's, and the message's flag and length."""

STREAM_BITS = 0x7FFF_FFFF
"""The bits of a stream's number; the one before them is reserved."""
DEFAULT_WINDOW = 65_535
DEFAULT_FRAME_SIZE = 16_384
MAX_FRAME_SIZE = 2**24 - 1
MAX_WINDOW = 2**31 - 1

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY_FIELDS = 0x20


class Kind(IntEnum):
    """Kinds of frames (section 6)."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Setting(IntEnum):
    """Identifiers of settings (section 6.5.2)."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class ErrorCode(IntEnum):
    """Why a stream or a connection ends (section 7)."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


_SETTING = Struct(">HL")
_WORD = Struct(">L")
_GOAWAY = Struct(">LL")


def frame(kind: Kind, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame."""
    size = len(payload)
    return HEAD.pack(size >> 8, size & 255, kind, flags, stream) + payload


def header_frames(stream: int, block: bytes, *, end: bool) -> bytes:
    """A header block in HEADERS, and CONTINUATION where it is larger than a frame; ``end`` ends the stream's half."""
    ending = END_STREAM if end else 0
    if len(block) <= DEFAULT_FRAME_SIZE:
        return frame(Kind.HEADERS, END_HEADERS | ending, stream, block)
    frames, rest = frame(Kind.HEADERS, ending, stream, block[:DEFAULT_FRAME_SIZE]), block[DEFAULT_FRAME_SIZE:]
    while len(rest) > DEFAULT_FRAME_SIZE:
        frames += frame(Kind.CONTINUATION, 0, stream, rest[:DEFAULT_FRAME_SIZE])
        rest = rest[DEFAULT_FRAME_SIZE:]
    return frames + frame(Kind.CONTINUATION, END_HEADERS, stream, rest)


def settings(values: dict[Setting, int]) -> bytes:
    """The SETTINGS frame that announces ``values``."""
    return frame(Kind.SETTINGS, 0, 0, b"".join(_SETTING.pack(*pair) for pair in values.items()))


def window_update(stream: int, increment: int) -> bytes:
    """The WINDOW_UPDATE frame that lets the peer send ``increment`` more bytes; stream 0 is the connection."""
    return frame(Kind.WINDOW_UPDATE, 0, stream, _WORD.pack(increment))


def rst_stream(stream: int, code: ErrorCode) -> bytes:
    """The RST_STREAM frame that ends a stream at once."""
    return frame(Kind.RST_STREAM, 0, stream, _WORD.pack(code))


def goaway(last_stream: int, code: ErrorCode, words: str) -> bytes:
    """The GOAWAY frame: streams after ``last_stream`` have not been looked at; ``words`` are for a person."""
    return frame(Kind.GOAWAY, 0, 0, _GOAWAY.pack(last_stream, code) + words.encode())


SETTINGS_ACK = frame(Kind.SETTINGS, ACK, 0, b"")
