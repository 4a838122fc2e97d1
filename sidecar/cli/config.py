"""``responses-sidecar config``: what can be configured, and what is in force."""

from __future__ import annotations

import json

import typer

from sidecar.cli.options import ConfigFile
from sidecar.config.load import ConfigError

app = typer.Typer(no_args_is_help=True, help="The configuration: its JSON Schema, and what is in force.")


@app.command()
def schema() -> None:
    """Print the JSON Schema of the configuration, by which editors complete and check the file.

    An editor with a YAML language server takes it from a first line such as
    "# yaml-language-server: $schema=schema.json".
    """
    from sidecar.config.models import Config

    typer.echo(json.dumps(Config.model_json_schema(), indent=2))


@app.command()
def show(config: ConfigFile) -> None:
    """Print what is in force, defaults included, and where each value comes from.

    What is printed is a configuration itself. Passwords in it are hidden. Exit status 2: it cannot be used.
    """
    from sidecar.cli.configuration_view import configuration_view

    try:
        typer.echo(configuration_view(config))
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
