"""Back-ups of a SQLite store. PostgreSQL has programs of its own for it: docs/store.md says how they are used.

SQLite's own copying is used (https://www.sqlite.org/backup.html): a copy of the file alone lacks what is still in the
``-wal`` file beside it, or has half of a transaction.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from sidecar.store.engine import file_uri, sqlite_file
from sidecar.store.errors import BackupError, SchemaError, StoreUnavailable
from sidecar.store.migrate import migrate
from sidecar.store.schema import schema_version, versions

# Beside the file itself, while it is in use or has not been closed in order.
_COMPANIONS = ("", "-wal", "-shm")


def back_up(url: str, target: Path) -> None:
    """Copy the store as it is now into the new file ``target``, which only its user can read. The store may be in use.

    Raises:
        BackupError: the store is not a SQLite file, ``target`` exists, or the copy is not whole.
        OSError: the copy cannot be written.
    """
    source = _file(url)
    if target.exists():
        raise BackupError(f"{target} exists already")
    partial = target.with_name(f".{target.name}.partial")
    try:
        _copy(source, partial)
        partial.rename(target)
    finally:
        _remove(partial)


def restore(url: str, backup: Path) -> Path | None:
    """Put a back-up in the store's place, and bring it to this release's schema. The store must not be in use.

    Returns where the store that was there has been moved to, if there was one.

    Raises:
        BackupError: the store is not a SQLite file, or ``backup`` is not a whole store of this release or an earlier
            one. Nothing has been changed then.
        OSError: the file cannot be written.
    """
    target = _file(url)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    try:
        _copy(backup, partial)
        _bring_up_to_date(f"sqlite:///{partial}", backup)
        replaced = _move_aside(target)
        partial.rename(target)
    finally:
        _remove(partial)
    _sync(target.parent)
    return replaced


def _file(url: str) -> Path:
    file = sqlite_file(url)
    if file is None:
        raise BackupError("the store is on PostgreSQL: use pg_dump and pg_restore, as docs/store.md says")
    return file


def _copy(source: Path, target: Path) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
    try:
        with (
            closing(sqlite3.connect(file_uri(source, "ro"), uri=True)) as original,
            closing(sqlite3.connect(target, isolation_level=None)) as copy,
        ):
            original.backup(copy)
            # One file, without companions.
            copy.execute("PRAGMA journal_mode=DELETE")
            found = copy.execute("PRAGMA integrity_check").fetchall()
    except sqlite3.Error as error:
        raise BackupError(f"{source} cannot be copied ({error})") from None
    if found != [("ok",)]:
        raise BackupError(f"{source} is damaged: {found[0][0]}")
    _sync(target)
    _sync(target.parent)


def _bring_up_to_date(url: str, backup: Path) -> None:
    try:
        found = schema_version(url)
        if found is None:
            raise BackupError(f"{backup} is not a back-up of a store")
        migrate(url)
    except SchemaError:
        raise BackupError(f"{backup} has the schema {found}, later than this release's {versions()[-1]}") from None
    except StoreUnavailable as error:
        raise BackupError(f"{backup} cannot be upgraded ({error})") from None


def _move_aside(file: Path) -> Path | None:
    """Rename a file with its companions, which belong together; where to, if it was there."""
    aside = file.with_name(f"{file.name}.replaced-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    for companion in _COMPANIONS:
        with suppress(FileNotFoundError):
            file.with_name(file.name + companion).rename(aside.with_name(aside.name + companion))
    return aside if aside.exists() else None


def _remove(file: Path) -> None:
    for companion in _COMPANIONS:
        file.with_name(file.name + companion).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
