"""What a peer can do wrong, by what it costs: the connection, one stream, or one call.

Source: RFC 9113, section 5.4; the gRPC over HTTP/2 protocol page.
"""

from __future__ import annotations

from sidecar.grpc_h2.frames import ErrorCode
from sidecar.grpc_h2.status import Status


class ConnectionFault(Exception):
    """The connection cannot go on: GOAWAY with ``code`` and ``words``."""

    def __init__(self, code: ErrorCode, words: str) -> None:
        super().__init__(words)
        self.code, self.words = code, words


class StreamFault(Exception):
    """The stream under way cannot go on: RST_STREAM with ``code``."""

    def __init__(self, code: ErrorCode, words: str) -> None:
        super().__init__(words)
        self.code = code


class CallFault(Exception):
    """A call that is well-formed HTTP/2, and ends with a gRPC ``status``."""

    def __init__(self, status: Status, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words
