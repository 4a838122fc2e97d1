"""The files that a configuration is made of: whether another one stands in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from sidecar.config.models import Config

Contents = tuple[bytes | None, ...]
"""A digest of each file; ``None`` where it cannot be read."""


def files_of(config: Config, path: Path) -> tuple[Path, ...]:
    """The configuration's file and the secrets that workers read at their start.

    The keys of upstreams are not among them: workers read them again by themselves.
    """
    secrets = (config.sealing_key, config.stored.master_key, config.store.url_file)
    return path, *(secret for secret in secrets if secret is not None)


def contents(files: Iterable[Path]) -> Contents:
    """What stands in ``files`` now, links followed."""
    return tuple(map(_digest, files))


class Watched:
    """Tells when ``files`` have changed: by what stands in them, or by their times, so that a touched one counts."""

    def __init__(self, files: tuple[Path, ...]) -> None:
        self._files = files
        self._told = self._seen = self._look()

    @property
    def contents(self) -> Contents:
        """What stood in them when they were last looked at."""
        return self._seen[0]

    def changed(self) -> bool:
        """Whether they have, and have been the same for two looks: a file may be half written."""
        before, self._seen = self._seen, self._look()
        if self._seen != before or self._seen == self._told:
            return False
        self._told = self._seen
        return True

    def note(self) -> None:
        """What stands in them now is known."""
        self._told = self._seen = self._look()

    def _look(self) -> tuple[Contents, tuple[int | None, ...]]:
        return contents(self._files), tuple(map(_changed_at, self._files))


def _digest(file: Path) -> bytes | None:
    try:
        return hashlib.blake2b(file.read_bytes()).digest()
    except OSError:
        return None


def _changed_at(file: Path) -> int | None:
    """Nanoseconds since the epoch."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None
