"""The store as commands use it: one transaction, and faults in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

from sidecar.cli.failing import fail
from sidecar.config.load import ConfigError, load, store_url_for_commands
from sidecar.identity.organizations import OrganizationError
from sidecar.identity.records import UnknownCredential
from sidecar.store import Access, SchemaError, StoreUnavailable, connect
from sidecar.store.engine import sqlite_file
from sidecar.store.schema import bring_up_to_date


@contextmanager
def transaction(config: Path, access: Access = "write", *, make: bool = False) -> Iterator[Connection]:
    """A transaction on the store of a configuration, which is upgraded first. One that reads holds up nobody.

    Where there is no file of a store, it is made only with ``make``: a mistaken path must not look like an empty store.

    Raises:
        typer.Exit: status 2: the configuration cannot be used; status 1: the store cannot, or not for this.
    """
    try:
        url = store_url_for_commands(load(config))
        file = sqlite_file(url)
        if not make and file is not None and not file.exists():
            raise StoreUnavailable(f"there is no {file}; serve makes it, or store migrate")
        bring_up_to_date(url)
        with connect(url, access) as connection:
            yield connection
    except ConfigError as error:
        fail(str(error), 2)
    except (StoreUnavailable, SchemaError, OSError) as error:
        fail(f"The store cannot be used: {error}", 1)
    except (OrganizationError, UnknownCredential, ValueError) as error:
        fail(str(error), 1)
