"""``responses-sidecar orgs``: organizations, their limits and their credits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sidecar.cli.options import AsJson, ConfigFile, limit_of, nano_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sidecar.identity.organizations import Organization

app = typer.Typer(help="Organizations, their limits and credits.", no_args_is_help=True)

_Organization = Annotated[str, typer.Argument(help="The organization's name or id.")]
_Limit = Annotated[str | None, typer.Option(metavar="COUNT|none", help="none: as inherited")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="A name of its own.")],
    config: ConfigFile,
    prepaid: Annotated[bool, typer.Option("--prepaid", help="Refuse requests that its credits do not cover.")] = False,
    id_: Annotated[
        str | None, typer.Option("--id", help="What authentication of your own calls it; made up by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make an organization."""
    from sidecar.cli.organizations_view import show
    from sidecar.cli.transaction import transaction
    from sidecar.identity.organizations import create

    with transaction(config, make=True) as connection:
        made = create(connection, name, prepaid=prepaid, id_=id_)
    show(made, {}, as_json=as_json)


@app.command("list")
def list_(config: ConfigFile, as_json: AsJson = False) -> None:
    """List the organizations; limits that all inherit stand under the organization *."""
    from sidecar.cli.organizations_view import show_all
    from sidecar.cli.transaction import transaction
    from sidecar.identity.organizations import limits_of, listed

    with transaction(config) as connection:
        found = [(one, limits_of(connection, one.id)) for one in listed(connection)]
        inherited = limits_of(connection, "*")
    show_all(found, inherited, as_json=as_json)


@app.command()
def disable(organization: _Organization, config: ConfigFile, as_json: AsJson = False) -> None:
    """End all of an organization's access; within five seconds no node takes its keys, tokens or sessions any more."""
    from sidecar.identity.organizations import disable

    _change(config, lambda connection: disable(connection, organization), as_json=as_json)


@app.command()
def enable(organization: _Organization, config: ConfigFile, as_json: AsJson = False) -> None:
    """Take the keys, tokens and sessions of an organization again that was disabled."""
    from sidecar.identity.organizations import enable

    _change(config, lambda connection: enable(connection, organization), as_json=as_json)


@app.command()
def set_limits(
    organization: Annotated[str, typer.Argument(help="The organization's name or id; * for what all inherit.")],
    config: ConfigFile,
    model: Annotated[str, typer.Option(help="The model that they are for.")] = "*",
    requests_per_minute: _Limit = None,
    tokens_per_minute: _Limit = None,
    image_bytes_per_minute: _Limit = None,
    concurrent_requests: _Limit = None,
    period: Annotated[Literal["day", "month", "none"] | None, typer.Option(help="Of the quota, in UTC.")] = None,
    period_tokens: _Limit = None,
    as_json: AsJson = False,
) -> None:
    """Set limits of an organization; those that are not named stay as they are.

    A model that the configuration does not have is told and taken: another node may serve it.
    """
    from sidecar.cli.model_names import doubt
    from sidecar.cli.organizations_view import show_limits
    from sidecar.cli.transaction import transaction
    from sidecar.config.load import load
    from sidecar.identity.organizations import find, set_limits

    counts = {
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "image_bytes_per_minute": image_bytes_per_minute,
        "concurrent_requests": concurrent_requests,
        "period_tokens": period_tokens,
    }
    changes: dict[str, int | str | None] = {name: limit_of(text) for name, text in counts.items() if text is not None}
    if period is not None:
        changes["period"] = None if period == "none" else period
    with transaction(config) as connection:
        id_ = organization if organization == "*" else find(connection, organization).id
        limits = set_limits(connection, id_, model, changes)
    sets = any(value is not None for value in changes.values())
    if sets and model != "*" and (words := doubt(model, load(config).models)) is not None:
        typer.echo(f"Warning: {words} The limits are set, for nodes that serve a model of this name.", err=True)
    show_limits(id_, {model: limits}, as_json=as_json)


@app.command(context_settings={"ignore_unknown_options": True})
def credit(
    organization: _Organization,
    amount: Annotated[str, typer.Argument(help="Of the currency; a negative one takes credits away.")],
    config: ConfigFile,
    reason: Annotated[str, typer.Option(help="For the books: an invoice, a correction.")],
    id_: Annotated[
        str | None, typer.Option("--id", help="Books once, however often it is repeated: an invoice's number.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add credits to the account of an organization."""
    from sidecar.identity.organizations import add_credit

    nano = nano_of(amount)
    _change(config, lambda connection: add_credit(connection, organization, nano, reason, id_), as_json=as_json)


def _change(config: Path, change: Callable[[Connection], Organization], *, as_json: bool) -> None:
    """Change an organization, and show what it is then."""
    from sidecar.cli.organizations_view import show
    from sidecar.cli.transaction import transaction
    from sidecar.identity.organizations import limits_of

    with transaction(config) as connection:
        changed = change(connection)
        limits = limits_of(connection, changed.id)
    show(changed, limits, as_json=as_json)
