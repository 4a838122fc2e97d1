"""``responses-sidecar keys``: API keys and tokens of organizations."""

from __future__ import annotations

from typing import Annotated

import typer

from sidecar.cli.options import AsJson, ConfigFile, Scopes, seconds_of

app = typer.Typer(help="API keys and tokens.", no_args_is_help=True)

_Id = Annotated[str, typer.Argument(metavar="ID", help="The credential's id, key_… or pat_…; not its secret.")]


@app.command()
def create(
    organization: Annotated[str, typer.Argument(help="The organization's name or id.")],
    config: ConfigFile,
    name: Annotated[str, typer.Option(help="What it is for.")] = "",
    scope: Scopes = None,
    expires: Annotated[str | None, typer.Option(metavar="DURATION", help="90d, 12h, 30m …; never by default.")] = None,
    user: Annotated[
        str | None, typer.Option(help="Whose it is: makes a token (b3os_pat_…) of this user rather than an API key.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(help="Its project: makes a key (ib_live_…) of the project; needs --environment."),
    ] = None,
    environment: Annotated[str | None, typer.Option(help="Its environment in the project, such as production.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make an API key, which is shown once."""
    from sidecar.cli.credentials_view import show_made
    from sidecar.cli.transaction import transaction
    from sidecar.identity.identity import INFERENCE, parse_scopes
    from sidecar.identity.organizations import find
    from sidecar.identity.records import Terms, issue
    from sidecar.identity.secret import Kind

    seconds = None if expires is None else seconds_of(expires)
    with transaction(config) as connection:
        scopes = parse_scopes(" ".join(scope)) if scope else INFERENCE
        kind = Kind.KEY if user is None else Kind.TOKEN
        kind = kind if project is None and environment is None else Kind.PROJECT
        terms = Terms(kind, find(connection, organization).id, scopes, name, user, seconds, project, environment)
        made = issue(connection, terms)
    show_made(*made, as_json=as_json)


@app.command("list")
def list_(
    config: ConfigFile,
    organization: Annotated[str | None, typer.Option("--org", help="Only those of one organization.")] = None,
    as_json: AsJson = False,
) -> None:
    """List keys and tokens, without their secrets."""
    from sidecar.cli.credentials_view import show_all
    from sidecar.cli.transaction import transaction
    from sidecar.identity.organizations import find
    from sidecar.identity.records import listed
    from sidecar.identity.secret import Kind
    from sidecar.store import now_us

    with transaction(config) as connection:
        id_ = find(connection, organization).id if organization else None
        records, now = list(listed(connection, (Kind.KEY, Kind.TOKEN, Kind.PROJECT), id_)), now_us(connection)
    show_all(records, now, as_json=as_json)


@app.command()
def revoke(id_: _Id, config: ConfigFile) -> None:
    """End a key; within five seconds no node takes it any more."""
    from sidecar.cli.transaction import transaction
    from sidecar.identity.records import revoke

    with transaction(config) as connection:
        record = revoke(connection, id_)
    typer.echo(f"{record.id} is revoked.")


@app.command()
def rotate(
    id_: _Id,
    config: ConfigFile,
    grace: Annotated[
        str, typer.Option(metavar="DURATION", help="For how long the old one still counts; 0s ends it at once.")
    ] = "24h",
    as_json: AsJson = False,
) -> None:
    """Make a new key on the terms of an old one, which still counts for some time."""
    from sidecar.cli.credentials_view import show_made
    from sidecar.cli.transaction import transaction
    from sidecar.identity.records import replace

    seconds = seconds_of(grace)
    with transaction(config) as connection:
        made = replace(connection, id_, seconds)
    show_made(*made, as_json=as_json)
