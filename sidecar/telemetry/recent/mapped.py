"""Files of a fixed size that are mapped into memory: a store costs no system call, and outlives the process."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

HEADER_BYTES = 64


def open_mapped(path: Path, layout: bytes, size: int) -> memoryview:
    """``size`` bytes after the header of the file at ``path``; zeros where it was not there, or of another ``layout``.

    Raises:
        OSError: it cannot be made, or there is no room for it.
    """
    header = layout.ljust(HEADER_BYTES, b"\0")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if os.pread(file, HEADER_BYTES, 0) != header or os.fstat(file).st_size != HEADER_BYTES + size:
            os.ftruncate(file, 0)
            # A store to a mapped page that the disk has no room for would end the process.
            os.posix_fallocate(file, 0, HEADER_BYTES + size)
            os.pwrite(file, header, 0)
        return memoryview(mmap.mmap(file, HEADER_BYTES + size))[HEADER_BYTES:]
    finally:
        os.close(file)


def read_mapped(path: Path, layout: bytes, size: int) -> bytes | None:
    """What :func:`open_mapped` has of it now; ``None`` where it is of another layout, or gone."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    header, body = content[:HEADER_BYTES], content[HEADER_BYTES:]
    return body if header == layout.ljust(HEADER_BYTES, b"\0") and len(body) == size else None
