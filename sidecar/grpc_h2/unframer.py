"""Cuts gRPC messages out of a stream's data.

Source: the gRPC over HTTP/2 protocol page, "Length-Prefixed-Message".
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from sidecar.grpc_h2.faults import CallFault
from sidecar.grpc_h2.status import Status

PREFIX = Struct(">BL")
"""What stands before each message: whether it is compressed, and its length in bytes."""


class Unframer:
    """The data of one stream so far; whole messages leave it."""

    __slots__ = ("_data", "_max_bytes")

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes`` is of one message."""
        self._data = bytearray()
        self._max_bytes = max_bytes

    def __len__(self) -> int:
        """Bytes of a message that is not whole yet."""
        return len(self._data)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The messages that ``data`` completes; any split of the stream gives the same ones.

        Raises:
            CallFault: a message is compressed, which nobody has offered, or longer than allowed.
        """
        self._data += data
        while len(self._data) >= PREFIX.size:
            compressed, size = PREFIX.unpack_from(self._data)
            if compressed:
                raise CallFault(Status.UNIMPLEMENTED, "compressed messages are not supported")
            if size > self._max_bytes:
                words = f"a message of {size} bytes; at most {self._max_bytes} are taken"
                raise CallFault(Status.RESOURCE_EXHAUSTED, words)
            end = PREFIX.size + size
            if len(self._data) < end:
                return
            message = bytes(self._data[PREFIX.size : end])
            del self._data[:end]
            yield message
