"""How a worker is given its configuration: over its standard input, so that all workers have the same.

The supervisor has read it; what stands in the file by now is another matter.
"""

from __future__ import annotations

import os
import pickle
import struct

from sidecar.config.models import Config

_LENGTH = struct.Struct(">Q")


def written(config: Config) -> bytes:
    """``config`` as it is written to a worker."""
    value = pickle.dumps(config)
    return _LENGTH.pack(len(value)) + value


def receive(descriptor: int) -> Config:
    """The configuration that the supervisor, this process's parent, has written to the other end of ``descriptor``.

    Raises:
        EOFError: it has ended before.
    """
    (length,) = _LENGTH.unpack(_read(descriptor, _LENGTH.size))
    config: Config = pickle.loads(_read(descriptor, length))
    return config


def _read(descriptor: int, length: int) -> bytes:
    """Not a byte more: what follows is for others."""
    read = b""
    while len(read) < length:
        piece = os.read(descriptor, length - len(read))
        if not piece:
            raise EOFError("no configuration comes from the supervisor, which has ended")
        read += piece
    return read
