"""Triton's regions in ``/dev/shm``: which are ours, and what removes those that a killed server left behind.

The directory is everybody's, so that names alone say nothing: only this user's regions are ever looked at or removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

_DIRECTORY = Path("/dev/shm")
_PREFIX = "responses-sidecar-"


def new_prefix() -> str:
    """What the names of one server's regions begin with."""
    return f"{_PREFIX}{secrets.token_hex(4)}-"


def remove(prefix: str) -> None:
    """Remove this user's regions whose names begin with ``prefix``, those that cannot be removed excepted."""
    for region in _regions_of_this_user(prefix):
        with contextlib.suppress(OSError):
            region.unlink()


def remove_unused() -> None:
    """Remove the regions of this project that no process has mapped any more."""
    regions = {str(region): region for region in _regions_of_this_user(_PREFIX)}
    mapped = {line.split()[-1] for line in _mappings() if str(_DIRECTORY) in line}
    for name in regions.keys() - mapped:
        with contextlib.suppress(OSError):
            regions[name].unlink()


def _regions_of_this_user(prefix: str) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for region in list(_DIRECTORY.glob(f"{prefix}*")):
            with contextlib.suppress(OSError):
                if region.lstat().st_uid == os.getuid():
                    yield region


def _mappings() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        # Those of other users cannot be read, and cannot have mapped what is this user's alone.
        with contextlib.suppress(OSError):
            yield from (process / "maps").read_text(errors="replace").splitlines()
