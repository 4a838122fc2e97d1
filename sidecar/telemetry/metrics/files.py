"""The directory in which the workers of a node keep their metrics: one file for each kind and worker.

A file belongs to a worker's place, not to its process: who is started in the place of a worker that has died counts on
in its files, so that counters never go back and files never pile up. What a gauge tells ends with its worker. A file
beside them holds what the supervisor tells.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import IO

# What the metrics of a few dozen models need. It is taken in advance: a store to a mapped page that the disk has no
# room for would end the process.
_SIZES = {"counter": 256 * 1024, "histogram": 1024 * 1024, "gauge_livesum": 64 * 1024, "gauge_livemin": 64 * 1024}
_LOADED = "loaded.json"


def claim(directory: Path) -> IO[str] | None:
    """Remove what earlier workers have left; until what is returned is closed, the files are its holder's.

    ``None`` where the directory cannot be made: the workers say why.

    Raises:
        BlockingIOError: another sidecar runs here, whose files stay.
        OSError: a file cannot be removed.
    """
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        lock = (directory / "lock").open("w")
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise
    for file in directory.glob("*.db"):
        file.unlink()
    return lock


def make(directory: Path, place: int) -> None:
    """Make those files of the worker in ``place`` that are not there.

    Raises:
        OSError: they cannot be made, or there is no room for them.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    for kind, size in _SIZES.items():
        file = os.open(directory / f"{kind}_{place}.db", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            os.posix_fallocate(file, 0, size)
        finally:
            os.close(file)


def forget_gauges(directory: Path, place: int) -> None:
    """The worker in ``place`` has ended."""
    for file in directory.glob(f"gauge_*_{place}.db"):
        file.unlink(missing_ok=True)


def note_loaded(directory: Path, at: float) -> None:
    """A configuration has been put in force ``at``, seconds since the epoch."""
    _write(directory, successful=True, at=at)


def note_refused(directory: Path) -> None:
    """The last one that was to be could not be used."""
    _write(directory, successful=False, at=read_loaded(directory)[1])


def read_loaded(directory: Path) -> tuple[bool, float]:
    """Whether the last one could be used, and when the one in force was put there.

    Raises:
        OSError: nothing has been noted.
    """
    successful, at = json.loads((directory / _LOADED).read_text())
    return bool(successful), float(at)


def _write(directory: Path, *, successful: bool, at: float) -> None:
    written = directory / f"{_LOADED}.new"
    written.write_text(json.dumps([successful, at]))
    written.rename(directory / _LOADED)
