"""How a command ends that cannot do what it was asked for."""

from __future__ import annotations

from typing import NoReturn

import typer


def fail(words: str, status: int) -> NoReturn:
    """Say why on standard error, and end with ``status``.

    Raises:
        typer.Exit: always.
    """
    typer.echo(words, err=True)
    raise typer.Exit(status)
