"""The peer's bytes that make no whole frame yet.

Source: RFC 9113, sections 3.4 and 4.1.
"""

from __future__ import annotations

from sidecar.grpc_h2.faults import ConnectionFault
from sidecar.grpc_h2.frames import PREFACE, ErrorCode


class Incoming:
    """What is left over of one read for the next. However small the reads are, each byte is copied once or twice."""

    def __init__(self, *, preface: bool = True) -> None:
        """``preface`` is whether the peer begins with one, as a client does."""
        self._kept = bytearray()
        self._wanted = 0
        self._preface_seen = not preface

    def join(self, data: bytes) -> bytes:
        """What was kept and ``data``; nothing where that is not yet as much as was wanted, or is but the preface.

        Raises:
            ConnectionFault: the connection does not begin with the preface of HTTP/2.
        """
        if self._kept:
            self._kept += data
            if len(self._kept) < self._wanted:
                return b""
            data = bytes(self._kept)
            self._kept.clear()
        return data if self._preface_seen else self._without_preface(data)

    def keep(self, data: bytes, wanted: int) -> None:
        """Keep ``data`` until there are ``wanted`` bytes."""
        self._kept += data
        self._wanted = wanted

    def _without_preface(self, data: bytes) -> bytes:
        if not PREFACE.startswith(data[: len(PREFACE)]):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "no HTTP/2 preface")
        self._preface_seen = len(data) >= len(PREFACE)
        if not self._preface_seen:
            self.keep(data, len(PREFACE))
        return data[len(PREFACE) :]
