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
from sidecar.store import SchemaError, StoreUnavailable, connect
from sidecar.store.migrate import migrate


@contextmanager
def transaction(config: Path) -> Iterator[Connection]:
    """A write transaction on the store of a configuration, which is made or upgraded first.

    Raises:
        typer.Exit: status 2: the configuration cannot be used; status 1: the store cannot, or not for this.
    """
    try:
        url = read_store_url(load(config).store)
        migrate(url)
        with connect(url) as connection:
            yield connection
    except ConfigError as error:
        _fail(str(error), 2)
    except (StoreUnavailable, SchemaError, OSError) as error:
        _fail(f"The store cannot be used: {error}", 1)
    except (OrganizationError, UnknownCredential, ValueError) as error:
        _fail(str(error), 1)


def _fail(words: str, status: int) -> None:
    typer.echo(words, err=True)
    raise typer.Exit(status)
