"""Whether a node's own directories and addresses can be had on this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from sidecar.cli.finding import BAD, GOOD, Finding
from sidecar.config.load import ConfigError, read_store_url
from sidecar.config.models import Config
from sidecar.store.engine import sqlite_file


def check_places(config: Config) -> Iterator[Finding]:
    """What is wrong with the sockets' directory, the store's, and the addresses to listen at; nothing where all is
    well.
    """
    yield from _check_directory("sockets", config.sockets)
    if config.accounts:
        yield from _check_directory("store.state", config.store.state)
        # What else is wrong with it is told by another check.
        with suppress(ConfigError, ValueError):
            file = sqlite_file(read_store_url(config.store))
            if file is not None and file.parent != config.store.state:
                yield from _check_directory("store.url", file.parent)
    for key, address in (("admin", config.admin.address), ("usage_feed", config.usage_feed.address)):
        if address is not None:
            yield from _check_address(f"{key}.address", address)


def _check_directory(key: str, directory: Path) -> Iterator[Finding]:
    there = next(place for place in (directory, *directory.parents) if place.exists())
    try:
        with TemporaryDirectory(prefix=".check-", dir=there):
            pass
    except PermissionError:
        # Who checks need not be who serves, and a directory may be made for that user at the start.
        yield Finding(GOOD, f"{key}: this user cannot write to {there}; the sidecar's must", note=True)
    except OSError as error:
        yield Finding(BAD, f"{key}: {directory} cannot be had ({there}: {error.strerror})")


def _check_address(key: str, address: str) -> Iterator[Finding]:
    host = address.rpartition(":")[0]
    try:
        # At any port: a sidecar that runs has its own.
        socket.create_server((host, 0)).close()
    except OSError as error:
        yield Finding(BAD, f"{key}: nothing can listen at {address} ({error.strerror})")
