"""The help of each command ends with an example, and the command is what the example says."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from sidecar.cli import app
from sidecar.cli.examples import EXAMPLES
from tests.core.repository.test_docs import parse

ROOT: Any = typer.main.get_command(app)


def visible(command: Any, words: str = "") -> Iterator[str]:
    """The words of each command that the help lists."""
    if not isinstance(command, TyperGroup):
        yield words
        return
    for name, inner in command.commands.items():
        if not inner.hidden:
            yield from visible(inner, f"{words} {name}".strip())


def test_every_command_has_an_example() -> None:
    assert set(EXAMPLES) == set(visible(ROOT))


@pytest.mark.parametrize(("words", "example"), EXAMPLES.items())
def test_an_example_is_of_its_command_and_is_taken(words: str, example: str) -> None:
    program, *given = shlex.split(example)
    assert (program, given[: len(words.split())]) == ("responses-sidecar", words.split())
    parse(ROOT, given[: given.index(">")] if ">" in given else given)


def test_the_help_shows_it() -> None:
    shown = CliRunner().invoke(app, ["keys", "rotate", "--help"], env={"COLUMNS": "200"}).output
    assert f"Example: {EXAMPLES['keys rotate']}" in shown
