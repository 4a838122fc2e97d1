"""The store as commands use it: one transaction, and faults in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from sqlalchemy import Connection

from sidecar.config.load import ConfigError, load, read_store_url
from sidecar.identity.organizations import OrganizationError
from sidecar.identity.records import UnknownCredential
from sidecar.store import Access, SchemaError, StoreUnavailable, connect
from sidecar.store.engine import sqlite_file
from sidecar.store.migrate import migrate, schema_version, versions


@contextmanager
def transaction(config: Path, access: Access = "write", *, make: bool = False) -> Iterator[Connection]:
    """A transaction on the store of a configuration, which is upgraded first. One that reads holds up nobody.

    Where there is no file of a store, it is made only with ``make``: a mistaken path must not look like an empty store.

    Raises:
        typer.Exit: status 2: the configuration cannot be used; status 1: the store cannot, or not for this.
    """
    try:
        url = read_store_url(load(config).store)
        file = sqlite_file(url)
        if not make and file is not None and not file.exists():
            raise StoreUnavailable(f"there is no {file}; serve makes it, or store migrate")
        if not _is_current(url):
            migrate(url)
        with connect(url, access) as connection:
            yield connection
    except ConfigError as error:
        _fail(str(error), 2)
    except (StoreUnavailable, SchemaError, OSError) as error:
        _fail(f"The store cannot be used: {error}", 1)
    except (OrganizationError, UnknownCredential, ValueError) as error:
        _fail(str(error), 1)


def _is_current(url: str) -> bool:
    """Whether the store is there and needs no upgrade, for which it would be locked."""
    try:
        return schema_version(url) == versions()[-1]
    except StoreUnavailable:
        return False


def _fail(words: str, status: int) -> None:
    typer.echo(words, err=True)
    raise typer.Exit(status)
