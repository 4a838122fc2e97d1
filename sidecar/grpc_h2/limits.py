"""What a peer may take of a connection."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.grpc_h2.frames import DEFAULT_WINDOW


@dataclass(frozen=True)
class Limits:
    """The bounds of one connection; whoever goes beyond one loses the call, the stream or the connection.

    What a connection holds is at most ``max_concurrent_streams`` times a message under way and what the application
    makes of ``stream_window`` bytes, since a stream whose own output waits for the peer may send no more than that.
    """

    max_concurrent_streams: int = 4096
    """Streams at a time; further ones are refused, which the peer may try elsewhere."""
    max_message_bytes: int = 4 * 1024 * 1024
    """Bytes of one gRPC message that the peer sends."""
    max_header_bytes: int = 16 * 1024
    """Bytes of one stream's headers: as they come, and decompressed as RFC 9113, section 6.5.2 counts them."""
    stream_window: int = 64 * 1024
    """Bytes that the peer may send on a stream before we let it send more.

    It is also the most that one stream can have handled in one turn of the loop, while all others wait.
    """
    connection_window: int = 4 * 1024 * 1024
    """The same for all streams together."""
    max_idle_frames: int = 10_000
    """Frames on end with which nothing moves on: no whole message comes, and none is sent.

    Each such frame is cheap, so this bounds floods of them: SETTINGS, PING, PRIORITY, empty or tiny DATA and
    CONTINUATION, streams that are opened and taken back (CVE-2023-44487, CVE-2019-9511 to 9518, CVE-2024-27316).
    """

    def __post_init__(self) -> None:
        """Check that a peer which does not know the windows yet cannot overrun them.

        Raises:
            ValueError: a window is smaller than that with which every connection begins.
        """
        if min(self.stream_window, self.connection_window) < DEFAULT_WINDOW:
            raise ValueError(f"a window has at least {DEFAULT_WINDOW:,} bytes")
