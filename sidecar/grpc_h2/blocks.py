"""Header blocks, put together from HEADERS and CONTINUATION.

Source: RFC 9113, sections 4.3, 6.2 and 6.10.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sidecar.grpc_h2.faults import ConnectionFault
from sidecar.grpc_h2.frames import END_HEADERS, END_STREAM, PADDED, PRIORITY_FIELDS, ErrorCode, Kind

PRIORITY_BYTES = 5
"""The fields of a priority, which nobody heeds any more."""


@dataclass(slots=True)
class Block:
    """A header block; ``ends_stream`` says that nothing follows on its stream."""

    stream: int
    ends_stream: bool
    data: bytearray = field(default_factory=bytearray)


class Blocks:
    """The block under way, if there is one: between its frames nothing else may come."""

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes`` is of one block as it comes."""
        self._max_bytes = max_bytes
        self.open: Block | None = None

    def check(self, kind: int, stream: int) -> None:
        """Look whether a frame may come now.

        Raises:
            ConnectionFault: it interrupts a block, or continues none.
        """
        if self.open is None:
            if kind == Kind.CONTINUATION:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION of nothing")
        elif kind != Kind.CONTINUATION or stream != self.open.stream:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a header block was interrupted")

    def begin(self, flags: int, stream: int, payload: bytes) -> Block | None:
        """Take HEADERS; the block, where that is all of it.

        Raises:
            ConnectionFault: the frame is malformed, or the block too large.
        """
        if not stream & 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "HEADERS on a stream that clients cannot open")
        piece = unpadded(payload) if flags & PADDED else payload
        if flags & PRIORITY_FIELDS:
            if len(piece) < PRIORITY_BYTES:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS without their priority fields")
            piece = piece[PRIORITY_BYTES:]
        return self._add(Block(stream, bool(flags & END_STREAM)), flags, piece)

    def go_on(self, flags: int, payload: bytes) -> Block | None:
        """Take CONTINUATION, after :meth:`check`; the block, where that completes it.

        Raises:
            ConnectionFault: the block is too large.
        """
        assert self.open is not None
        return self._add(self.open, flags, payload)

    def _add(self, block: Block, flags: int, piece: bytes) -> Block | None:
        block.data += piece
        if len(block.data) > self._max_bytes:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "the headers are too large")
        complete = bool(flags & END_HEADERS)
        self.open = None if complete else block
        return block if complete else None


def unpadded(payload: bytes) -> bytes:
    """The payload of a padded frame without its padding (section 6.1).

    Raises:
        ConnectionFault: there is more padding than payload.
    """
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - payload[0]]
