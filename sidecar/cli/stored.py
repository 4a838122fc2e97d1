"""``responses-sidecar stored``: the keys of stored responses, and where nothing may be stored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sidecar.cli.failing import fail
from sidecar.cli.options import AsJson, ConfigFile

app = typer.Typer(help="Stored responses: their keys, and where nothing may be stored.", no_args_is_help=True)

_Organization = Annotated[str, typer.Argument(help="The organization's name or id.")]


@app.command()
def rotate(config: ConfigFile) -> None:
    """Wrap all data keys with the first of the master keys; after that the others are needed no more.

    Exit status 2: the configuration cannot be used. Exit status 1: a data key cannot be opened; nothing has changed.
    """
    import os

    from sidecar.cli.transaction import transaction
    from sidecar.config.load import ConfigError, load, read_master_keys
    from sidecar.stored.keys import wrap_anew
    from sidecar.stored.master_keys import KeyUnknown, MasterKeys

    try:
        masters = MasterKeys(read_master_keys(load(config).stored))
        with transaction(config) as connection:
            count = wrap_anew(connection, masters, os.urandom)
    except ConfigError as error:
        fail(str(error), 2)
    except KeyUnknown as error:
        fail(f"{str(error)[0].upper()}{str(error)[1:]}. Nothing has changed.", 1)
    typer.echo(f"{count} data keys were wrapped by another master key; all are wrapped by {masters.first} now.")


@app.command()
def shred(organization: _Organization, config: ConfigFile) -> None:
    """Throw away an organization's data key, and delete what it has stored: nobody can read it any more.

    Exit status 2: the configuration cannot be used. Exit status 1: the store cannot, or there is no such organization.
    """
    from sidecar.cli.transaction import transaction
    from sidecar.config.load import load, read_store_url
    from sidecar.identity.organizations import find
    from sidecar.store import StoreUnavailable
    from sidecar.store.engine import sqlite_file
    from sidecar.store.journal import empty_journal
    from sidecar.stored.keys import shred

    with transaction(config) as connection:
        team = find(connection, organization)
        count = shred(connection, team.id)
    remove_the_ended(config)
    if count is None:
        typer.echo(f"{team.name} has no data key: nothing is stored.")
        return
    typer.echo(f"The data key of {team.name} is gone, and so are {count} responses.")
    url = read_store_url(load(config).store)
    try:
        emptied = sqlite_file(url) is None or empty_journal(url)
    except StoreUnavailable as error:
        fail(f"The store's journal, which still holds the wrapped key, cannot be emptied: {error}", 1)
    if not emptied:
        fail("The store's journal, which still holds the wrapped key, is in use; shred again to empty it.", 1)


@app.command()
def zero_retention(
    organization: _Organization,
    config: ConfigFile,
    switch: Annotated[Literal["on", "off"] | None, typer.Argument(help="Show what holds, where left out.")] = None,
    project: Annotated[str | None, typer.Option(help="Only for this project.")] = None,
    environment: Annotated[str | None, typer.Option(help="Only for this environment of the project.")] = None,
    as_json: AsJson = False,
) -> None:
    """Require that nothing is stored, which deletes what is stored at this level and below; or allow it again.

    Exit status 2: the configuration cannot be used. Exit status 1: the store cannot, or there is no such organization.
    """
    from sidecar.cli.listing import print_json, print_table
    from sidecar.cli.transaction import transaction
    from sidecar.identity.organizations import find
    from sidecar.identity.records import check_places, has_keys
    from sidecar.responses.level import ALL, Level
    from sidecar.stored.zero_retention import levels_of, no_longer_require, require

    if environment is not None and project is None:
        raise typer.BadParameter("an environment is one of a project: --project is needed")
    try:
        # An empty name, as of a script's variable that is not set, must not be read as all of them.
        check_places(project, environment)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with transaction(config) as connection:
        team = find(connection, organization)
        level = Level(team.id, project or ALL, environment or ALL)
        if switch == "on":
            count = require(connection, level)
        elif switch == "off" and not no_longer_require(connection, level):
            fail("It is not required at this level; nothing has changed.", 1)
        levels = levels_of(connection, {level.organization})
        known = project is None or has_keys(connection, team.id, project, environment)
    if switch == "on":
        remove_the_ended(config)
        typer.echo(f"Stored responses that have been deleted: {count}.", err=True)
        if not known:
            typer.echo(f"Note: {team.name} has no key of this project and environment so far.", err=True)
    if as_json:
        print_json([{"project": level.project, "environment": level.environment} for level in levels])
    else:
        print_table(("Project", "Environment"), ((level.project, level.environment) for level in levels))


def remove_the_ended(config: Path) -> None:
    """Remove what has expired, in as many transactions as that takes, so that nobody waits for one for long."""
    from sidecar.cli.transaction import transaction
    from sidecar.stored.removal import remove_some

    more = True
    while more:
        with transaction(config) as connection:
            more = remove_some(connection)
