"""The checkpoint file of one worker: a slot for each reservation that is not settled, in memory that outlives it.

``<incarnation>.slots`` is mapped, so that a store costs no system call and is there when the process has been killed.
The worker holds a lock on it that ends with the process, whatever ends it: who gets the lock knows that its worker is
dead, settles what the slots hold, and removes the file. (A process forked while it is open would hold the lock too.)

What the kernel has not written when the whole machine goes down is lost, and a page may then be older than another. A
file of an earlier boot is therefore not believed; for that loss there is the coarser checkpoint in the store.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sidecar.admission.slots import SLOT_BYTES, Left, Slot, read_slot

SUFFIX = ".slots"
MOST_FILES = 1024
"""How many files there may be, most of them of workers that died while the store was down."""

_MAGIC = b"slots 1\n"
_HEADER_BYTES = mmap.ALLOCATIONGRANULARITY
_SEGMENT_SLOTS = 256
_SEGMENT_BYTES = _SEGMENT_SLOTS * SLOT_BYTES
_MOST_SEGMENTS = 256
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class CheckpointFull(Exception):
    """No slot can be had: too many reservations are open, or the disk is full."""


class Checkpoint:
    """The file of this process. It grows by what 256 reservations need, to 65,536 of them (16 MiB)."""

    def __init__(self, directory: Path, incarnation: str) -> None:
        """Make the file; ``incarnation`` names this process among all that there ever were.

        Raises:
            OSError: it cannot be made, or there are :data:`MOST_FILES` already.
        """
        self.incarnation = incarnation
        self.path = directory / f"{incarnation}{SUFFIX}"
        self._free: deque[memoryview] = deque()
        self._used: set[Slot] = set()
        self._segments = 0
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Nobody may find the file before it is locked.
        with _directory_lock(directory):
            if sum(1 for _ in directory.glob(f"*{SUFFIX}")) >= MOST_FILES:
                raise OSError(f"{directory} holds {MOST_FILES} checkpoint files that wait to be settled")
            self._file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        os.pwrite(self._file, _MAGIC + _boot_id(), 0)

    @property
    def used(self) -> frozenset[Slot]:
        """The slots in use."""
        return frozenset(self._used)

    @property
    def open(self) -> int:
        """How many slots are in use."""
        return len(self._used)

    def take(self, id: str, input_tokens: int) -> Slot:
        """A slot for the reservation ``id``, which must not be made without one.

        Raises:
            CheckpointFull: there is none.
        """
        if not self._free:
            self._grow()
        slot = Slot(self._free.popleft(), id, input_tokens)
        self._used.add(slot)
        return slot

    def free(self, slot: Slot) -> None:
        """The reservation in ``slot`` is settled, and that is committed."""
        self._used.remove(slot)
        self._free.append(slot.free())

    def close(self) -> None:
        """Leave what is in use to others; without that, remove the file."""
        if not self._used:
            self.path.unlink(missing_ok=True)
        # Its mappings hold the lock too, as long as a slot is referred to.
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)

    def _grow(self) -> None:
        if self._segments == _MOST_SEGMENTS:
            raise CheckpointFull(f"{_MOST_SEGMENTS * _SEGMENT_SLOTS} reservations are open")
        at = _HEADER_BYTES + self._segments * _SEGMENT_BYTES
        try:
            # A store to a mapped page that the disk has no room for would end the process.
            os.posix_fallocate(self._file, at, _SEGMENT_BYTES)
            segment = memoryview(mmap.mmap(self._file, _SEGMENT_BYTES, offset=at))
        except OSError as error:
            raise CheckpointFull(f"{self.path} cannot grow ({error.strerror})") from error
        self._segments += 1
        self._free.extend(segment[start : start + SLOT_BYTES] for start in range(0, _SEGMENT_BYTES, SLOT_BYTES))


class DeadCheckpoint:
    """The file of a worker that is dead, locked by who has found it."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file
        data = os.pread(file, os.fstat(file).st_size, 0)
        self.incarnation = path.name.removesuffix(SUFFIX)
        self.current = data[: len(_MAGIC) + len(_boot_id())] == _MAGIC + _boot_id()
        """Whether the slots can be believed: the machine has not been started again since."""
        starts = range(_HEADER_BYTES, len(data) - SLOT_BYTES + 1, SLOT_BYTES) if self.current else ()
        found = (read_slot(data[start : start + SLOT_BYTES]) for start in starts)
        self.left: list[Left] = [slot for slot in found if slot is not None]
        """What stands in the slots."""

    def remove(self) -> None:
        """All that it held is settled."""
        self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Leave it to whoever comes next."""
        os.close(self._file)


def claim_dead(directory: Path) -> Iterator[DeadCheckpoint]:
    """The files whose workers are dead and that nobody else is at; each must be released or removed."""
    if not directory.is_dir():
        return
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        with _directory_lock(directory):
            claimed = _claim(path)
        if claimed is not None:
            yield DeadCheckpoint(path, claimed)


def _claim(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        file = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return None
        # It may have been removed between its opening and its locking.
        if path.exists():
            return file
        os.close(file)
    return None


@contextmanager
def _directory_lock(directory: Path) -> Iterator[None]:
    """Held for moments only: to make a file and lock it, or to try another's lock."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _boot_id() -> bytes:
    """Names the time since the machine was started; the same everywhere where the system has no such name."""
    try:
        return _BOOT_ID.read_bytes().strip()
    except OSError:
        return b"unknown"
