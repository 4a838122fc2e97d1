"""``responses-sidecar directives``: what teams let their own requests be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sidecar.cli.failing import fail
from sidecar.cli.options import AsJson, ConfigFile, limit_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sidecar.responses.level import Level

app = typer.Typer(help="Directives of teams, of their projects and environments.", no_args_is_help=True)

_Organization = Annotated[str, typer.Argument(help="The organization's name or id.")]
_Project = Annotated[str | None, typer.Option(help="Only for this project.")]
_Environment = Annotated[str | None, typer.Option(help="Only for this environment of the project.")]
_Count = Annotated[str | None, typer.Option(metavar="COUNT|none", help="none: as inherited")]


@app.command("set")
def set_(
    organization: _Organization,
    config: ConfigFile,
    project: _Project = None,
    environment: _Environment = None,
    max_output_tokens: _Count = None,
    max_input_tokens: _Count = None,
    no_training: Annotated[
        Literal["on", "off", "none"] | None,
        typer.Option(help="Only upstreams that train on nothing; none: as inherited."),
    ] = None,
    excluded_vendors: Annotated[
        str | None,
        typer.Option(metavar="VENDOR,…|nobody|none", help="Vendors that get no request; none: as inherited."),
    ] = None,
    user_requests_per_minute: _Count = None,
    user_tokens_per_minute: _Count = None,
    zero_data_retention: Annotated[
        Literal["on", "off"] | None,
        typer.Option(help="on deletes what is stored at this level and below; as stored zero-retention does."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set directives at one level; those that are not named stay as they are. They hold within seconds."""
    from sidecar.admission.directive_rows import set_directives
    from sidecar.cli.directives_view import show_level
    from sidecar.cli.stored import remove_the_ended
    from sidecar.cli.transaction import transaction
    from sidecar.stored.zero_retention import levels_of, no_longer_require, require

    counts = {
        "max_output_tokens": max_output_tokens,
        "max_input_tokens": max_input_tokens,
        "user_requests_per_minute": user_requests_per_minute,
        "user_tokens_per_minute": user_tokens_per_minute,
    }
    changes: dict[str, object] = {name: limit_of(text) for name, text in counts.items() if text is not None}
    for name in ("max_output_tokens", "max_input_tokens"):
        if changes.get(name) == 0:
            raise typer.BadParameter(f"{name} is at least 1")
    if no_training is not None:
        changes["no_training"] = None if no_training == "none" else no_training == "on"
    if excluded_vendors is not None:
        changes["excluded_vendors"] = _vendors(excluded_vendors)
    with transaction(config) as connection:
        level = _level(connection, organization, project, environment)
        directives = set_directives(connection, level, changes)
        if zero_data_retention == "on":
            require(connection, level)
        elif zero_data_retention == "off":
            no_longer_require(connection, level)
        retains_nothing = level in levels_of(connection, {level.organization})
    if zero_data_retention == "on":
        remove_the_ended(config)
    show_level(level, directives, retains_nothing, as_json=as_json)


@app.command()
def show(
    organization: _Organization,
    config: ConfigFile,
    project: _Project = None,
    environment: _Environment = None,
    as_json: AsJson = False,
) -> None:
    """Show what is set for an organization, and with a project what holds for that and its environment."""
    from sidecar.admission.directive_rows import read_directives
    from sidecar.admission.directives import configured
    from sidecar.cli.directives_view import show_all
    from sidecar.cli.transaction import transaction
    from sidecar.config.load import load
    from sidecar.stored.zero_retention import levels_of

    settings = configured(load(config).directives)
    with transaction(config, "read") as connection:
        level = _level(connection, organization, project, environment)
        found = read_directives(connection, {level.organization})
        retains_nothing = levels_of(connection, {level.organization})
    show_all(level, found, settings, retains_nothing, as_json=as_json)


@app.command()
def clear(
    organization: _Organization, config: ConfigFile, project: _Project = None, environment: _Environment = None
) -> None:
    """Have nothing set at one level, zero data retention neither; other levels stay as they are.

    Exit status 1: nothing is set there.
    """
    from sidecar.admission.directive_rows import clear_directives
    from sidecar.cli.transaction import transaction
    from sidecar.stored.zero_retention import no_longer_require

    with transaction(config) as connection:
        level = _level(connection, organization, project, environment)
        cleared = clear_directives(connection, level)
        if not (no_longer_require(connection, level) or cleared):
            fail("Nothing is set at this level; nothing has changed.", 1)


def _level(connection: Connection, organization: str, project: str | None, environment: str | None) -> Level:
    """The level that the options name. An empty name, as of a script's variable that is not set, is no level."""
    from sidecar.identity.organizations import find
    from sidecar.identity.records import check_places
    from sidecar.responses.level import ALL, Level

    if environment is not None and project is None:
        raise typer.BadParameter("an environment is one of a project: --project is needed")
    check_places(project, environment)
    return Level(find(connection, organization).id, project or ALL, environment or ALL)


def _vendors(text: str) -> tuple[str, ...] | None:
    if text == "none":
        return None
    vendors = () if text == "nobody" else tuple(dict.fromkeys(text.split(",")))
    if not all(vendor and vendor.isascii() and vendor.isprintable() and " " not in vendor for vendor in vendors):
        raise typer.BadParameter(f"{text} is no list of vendors such as openai,azure")
    return vendors
