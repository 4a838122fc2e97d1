"""The ``responses-sidecar`` command.

Each command imports what it runs when it runs: the supervisor stays small, and no command waits for another's imports.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from sidecar.cli import config as config_commands
from sidecar.cli import directives, envoy, keys, orgs, requests, sessions, store, stored
from sidecar.cli.examples import show_examples
from sidecar.cli.ledger import reconcile, usage
from sidecar.cli.options import ConfigFile as _ConfigFile
from sidecar.cli.options import address_of
from sidecar.config.load import ConfigError, load
from sidecar.config.models import Config

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(config_commands.app, name="config")
app.add_typer(directives.app, name="directives")
app.add_typer(envoy.app, name="envoy")
app.add_typer(orgs.app, name="orgs")
app.add_typer(keys.app, name="keys")
app.add_typer(sessions.app, name="sessions")
app.add_typer(requests.app, name="requests")
app.add_typer(store.app, name="store")
app.add_typer(stored.app, name="stored")
app.command()(usage)
app.command()(reconcile)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("responses-sidecar"))
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The OpenAI Responses API in front of Triton Inference Server, as an Envoy external processor."""


@app.command()
def init(
    triton: Annotated[str, typer.Option(metavar="HOST:PORT", callback=address_of, help="Triton's gRPC service.")],
    tokenizers: Annotated[
        list[Path] | None,
        typer.Option(help="A directory to look for tokenizers in, once for each; six levels of it are searched."),
    ] = None,
    config: Annotated[Path, typer.Option("--config", help="The file to write.")] = Path("sidecar.yaml"),
) -> None:
    """Write a configuration for a Triton that runs, and say what is missing.

    Triton is asked what its models are and how each is called; for each the tokenizer is looked for, and its chat
    template read for the forms of calls and reasoning.

    Exit status 1: no model can be served yet. Exit status 2: the file is there already, or cannot be written.
    """
    from sidecar.cli.init import run_init

    raise typer.Exit(run_init(triton, tokenizers or (), config, typer.echo))


@app.command()
def serve(config: _ConfigFile) -> None:
    """Serve requests from Envoy until SIGTERM; SIGHUP loads the configuration again.

    Exit status 2: the configuration cannot be used. Exit status 1: no worker can be started.
    """
    from sidecar.server.start import serve

    settings = _load(config)
    _configure_logging(settings)
    raise typer.Exit(asyncio.run(serve(settings, config.absolute())))


@app.command()
def check(
    config: _ConfigFile,
    envoy_config: Annotated[
        Path | None, typer.Option("--envoy-config", help="An Envoy configuration to validate too.")
    ] = None,
) -> None:
    """Dry run: try everything that serving needs, and serve nothing.

    Exit status 2: the configuration cannot be used. Exit status 1: something else is not as it should be.
    """
    from sidecar.cli.check import run_checks

    raise typer.Exit(run_checks(_load(config), envoy_config, typer.echo))


@app.command()
def verify(
    url: Annotated[str, typer.Argument(help="The base URL as an SDK takes it; /responses is added.")],
    key: Annotated[
        str | None,
        typer.Option(envvar="RESPONSES_API_KEY", help="The API key; other users see the option, not the environment."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask; the endpoint's first one by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as one JSON document.")] = False,
) -> None:
    """Try whether a Responses endpoint keeps to the protocol.

    Exit status 1: it does not. Exit status 2: it could not be tried.
    """
    from sidecar.cli.verify import run_verification

    def warn(words: str) -> None:
        typer.echo(words, err=True)

    raise typer.Exit(run_verification(url, key, model, as_json=as_json, say=typer.echo, warn=warn))


@app.command()
def health(
    config: Annotated[Path | None, typer.Option("--config", help="The configuration file (YAML).")] = None,
    sockets: Annotated[
        Path | None,
        typer.Option(help="The directory of the workers' sockets, whatever stands in the configuration file now."),
    ] = None,
) -> None:
    """Ask the workers of a node that runs on this machine whether they serve.

    Exit status 1: none does. Exit status 2: the configuration cannot be used.
    """
    from sidecar.cli.health import sockets_in, workers_that_serve

    if (config is None) == (sockets is None):
        raise typer.BadParameter("either --config or --sockets is needed")
    if sockets is not None:
        workers = sockets_in(sockets)
    else:
        assert config is not None
        settings = _load(config)
        workers = [settings.socket(index) for index in range(settings.workers)]
    serving = workers_that_serve(workers)
    typer.echo(f"{serving} of {len(workers)} workers serve")
    raise typer.Exit(0 if serving else 1)


@app.command(hidden=True)
def docs(directory: Annotated[Path, typer.Argument(help="Where to write them.")]) -> None:
    """Write the documents that are made from the code."""
    from sidecar.cli.docs import write_docs

    write_docs(directory)


@app.command(hidden=True)
def worker(
    config: _ConfigFile,
    index: Annotated[int, typer.Option("--index")],
    place: Annotated[int, typer.Option("--place")],
) -> None:
    """One worker process; the supervisor starts it, and gives it what it has read in the file."""
    from sidecar.server.handing import receive
    from sidecar.server.worker import run_worker

    try:
        settings = receive(0)
    except EOFError as error:
        typer.echo(f"standard input: {error}", err=True)
        raise typer.Exit(2) from error
    _configure_logging(settings)
    try:
        run_worker(settings, index, place)
    except ConfigError as error:
        # It goes to the supervisor, which reads standard output.
        typer.echo(str(error.in_file(config)))
        raise typer.Exit(2) from error


show_examples(app)


def main() -> None:
    """Run the command."""
    app()


def _load(path: Path) -> Config:
    try:
        return load(path)
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error


def _configure_logging(config: Config) -> None:
    from sidecar.telemetry.log_lines import configure_logging

    configure_logging(config.log_format, config.log_level)
