"""``responses-sidecar store``: the schema, back-ups and their restoring."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from sidecar.cli.failing import fail
from sidecar.cli.options import ConfigFile

app = typer.Typer(help="The store: its schema, back-ups and their restoring.", no_args_is_help=True)


@app.command()
def migrate(config: ConfigFile) -> None:
    """Make the store, or bring it to this release's schema, and so the spool, if any; serve does so by itself.

    Exit status 2: the configuration or the store cannot be used. Exit status 1: the store does not answer.
    """
    from sidecar.admission.spool import has_spool, spool_url
    from sidecar.config.load import load
    from sidecar.store.schema import bring_up_to_date, schema_version

    with _store(config) as url:
        settings = load(config).store
        try:
            # First what answers even where the store does not.
            if has_spool(settings):
                bring_up_to_date(spool_url(settings.state))
            bring_up_to_date(url)
        except OSError as error:
            fail(f"{config}: store: {error}", 2)
        typer.echo(f"The store has the schema {schema_version(url)}.")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The back-up, a new file.")], config: ConfigFile
) -> None:
    """Copy a SQLite store into one file, while it is in use.

    Exit status 2: the configuration cannot be used. Exit status 1: the back-up cannot be made.
    """
    from sidecar.store.backup import back_up

    with _store(config) as url:
        back_up(url, file)
        typer.echo(f"The store has been copied to {file}.")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What store backup has made.")], config: ConfigFile
) -> None:
    """Put a back-up in the place of a SQLite store, while the sidecar is stopped.

    Exit status 2: the configuration cannot be used. Exit status 1: the back-up cannot be restored.
    """
    from sidecar.config.load import load
    from sidecar.server.listening import worker_listens
    from sidecar.store.backup import restore
    from sidecar.store.errors import BackupError

    with _store(config) as url:
        if worker_listens(load(config)):
            raise BackupError("the sidecar runs: stop it first")
        replaced = restore(url, file)
        typer.echo(f"The store is that of {file}.")
        if replaced is not None:
            typer.echo(f"What was there is now {replaced}.")


@contextmanager
def _store(config: Path) -> Iterator[str]:
    """The store's URL; faults are told in one sentence.

    Raises:
        typer.Exit: status 2 for what stays as it is until somebody changes it, otherwise 1.
    """
    from sidecar.config.load import ConfigError, load, store_url_for_commands
    from sidecar.store import SchemaError, StoreUnavailable
    from sidecar.store.errors import BackupError

    try:
        yield store_url_for_commands(load(config))
    except ConfigError as error:
        fail(str(error), 2)
    except SchemaError as error:
        fail(f"{config}: store: {error}", 2)
    except (StoreUnavailable, OSError) as error:
        fail(f"The store cannot be used: {error}", 1)
    except BackupError as error:
        fail(f"{str(error)[0].upper()}{str(error)[1:]}.", 1)
