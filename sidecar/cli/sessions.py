"""``responses-sidecar sessions``: sessions of a console's users."""

from __future__ import annotations

from typing import Annotated

import typer

from sidecar.cli.options import AsJson, ConfigFile, Scopes, seconds_of

app = typer.Typer(help="Sessions of users, shown by a cookie.", no_args_is_help=True)


@app.command()
def create(
    organization: Annotated[str, typer.Argument(help="The organization's name or id.")],
    config: ConfigFile,
    user: Annotated[str, typer.Option(help="Who has logged in.")],
    expires: Annotated[str, typer.Option(metavar="DURATION", help="12h, 30m …: from 1m to 30d.")] = "12h",
    scope: Scopes = None,
    as_json: AsJson = False,
) -> None:
    """Make a session; the cookie's value is shown once."""
    from sidecar.cli.credentials_view import show_made
    from sidecar.cli.transaction import transaction
    from sidecar.identity.identity import INFERENCE, parse_scopes
    from sidecar.identity.sessions import begin

    seconds = seconds_of(expires)
    with transaction(config) as connection:
        scopes = parse_scopes(" ".join(scope)) if scope else INFERENCE
        made = begin(connection, organization, user, seconds=seconds, scopes=scopes)
    show_made(*made, as_json=as_json)


@app.command("list")
def list_(config: ConfigFile, as_json: AsJson = False) -> None:
    """List the sessions that have not ended."""
    from sidecar.cli.credentials_view import show_all
    from sidecar.cli.transaction import transaction
    from sidecar.identity.sessions import listed
    from sidecar.store import now_us

    with transaction(config) as connection:
        records, now = listed(connection), now_us(connection)
    show_all(records, now, as_json=as_json)


@app.command()
def end(id_: Annotated[str, typer.Argument(metavar="ID", help="The session's id, ses_….")], config: ConfigFile) -> None:
    """End a session; within five seconds no node takes it any more."""
    from sidecar.cli.transaction import transaction
    from sidecar.identity.sessions import end

    with transaction(config) as connection:
        record = end(connection, id_)
    typer.echo(f"{record.id} has ended.")
