"""Whether a sidecar of a configuration runs."""

from __future__ import annotations

import socket
from contextlib import suppress

from sidecar.config.models import Config


def worker_listens(config: Config) -> bool:
    """Whether a process listens on the socket of one of the workers."""
    for index in range(config.workers):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(config.socket(index)))
            return True
    return False
