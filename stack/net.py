"""Small helpers for ports and Unix sockets."""

from __future__ import annotations

import errno
import http.client
import random
import socket
import struct
import urllib.request
from pathlib import Path

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opens URLs of this machine, whatever proxies the environment names."""


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nothing listens on now.

    It lies below the range that the system gives to outgoing connections: one of those could take it before it is used.
    """
    while why_not_port(port := random.randrange(10_000, 32_768)):
        pass
    return port


def why_not_port(port: int) -> str | None:
    """Why this user cannot listen on the TCP port of 127.0.0.1, in words that go on from its number, or ``None``."""
    try:
        # Envoy itself would share the port with another Envoy (SO_REUSEPORT), so that it never sees the clash.
        socket.create_server(("127.0.0.1", port)).close()
    except PermissionError:
        return "is one of the system's, which this user may not listen on"
    except OSError as error:
        return "is in use" if error.errno == errno.EADDRINUSE else f"cannot be listened on: {error.strerror}"
    return None


def peer_pid(path: Path) -> int | None:
    """The process that listens on a Unix socket, or ``None`` where nothing does."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return None
        pid, _uid, _gid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)


class UnixHTTPConnection(http.client.HTTPConnection):
    """HTTP/1.1 over a Unix socket."""

    def __init__(self, path: Path, timeout: float = 5) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
