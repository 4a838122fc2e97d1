"""The commands that the documents show exist, with these options, and every page has its place in the site."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from sidecar.cli import app as sidecar
from stack.cli import app as dev
from stack.paths import ROOT
from stack.release import project_version

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = {
    "responses-sidecar": typer.main.get_command(sidecar),
    ".venv/bin/responses-sidecar": typer.main.get_command(sidecar),
    "./dev": typer.main.get_command(dev),
}
OUTSIDE = re.compile(r"\]\(\.\./")


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command of our programs in the console blocks of a page."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.removeprefix("$ ").startswith(tuple(PROGRAMS)):
                words = shlex.split(line.removeprefix("$ "), comments=True)
                # Of a pipe or a redirection only what comes before it is ours.
                yield words[: next((at for at, word in enumerate(words) if word in {"|", ">", "&&"}), len(words))]


def parse(command: Any, words: Sequence[str]) -> None:
    """Have a command of typer's take its arguments without being run; raises what typer raises, or ``LookupError``."""
    if isinstance(command, TyperGroup):
        if words[0] not in command.commands:
            raise LookupError(f"no command {words[0]}")
        parse(command.commands[words[0]], words[1:])
    else:
        assert isinstance(command, TyperCommand)
        command.make_context(command.name, list(words)).close()


SHOWN = [(page.name, words) for page in PAGES for words in commands(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("page", "words"), SHOWN, ids=[f"{page}: {' '.join(words)}" for page, words in SHOWN])
def test_a_command_that_is_shown_exists(page: str, words: list[str]) -> None:
    parse(PROGRAMS[words[0]], words[1:])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("responses-sidecar serve --config x --nothing y", "No such option"),
        ("responses-sidecar unknown", "no command unknown"),
        ("responses-sidecar check", "config"),
        ("./dev up a", "unexpected extra argument"),
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str, why: str) -> None:
    ((program, *words),) = commands(f"```console\n{line}   # words\n```\n")
    with pytest.raises(Exception, match=why):
        parse(PROGRAMS[program], words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_wheel_that_is_named_is_the_one_that_a_release_has(page: Path) -> None:
    named = re.findall(r"responses_sidecar-([\d.]+)-", page.read_text(encoding="utf-8"))
    assert set(named) <= {project_version()}


def test_every_page_has_one_place_in_the_site() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    placed = list(_files(site["project"]["nav"]))
    assert sorted(placed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def _files(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for inner in entry.values():
            if isinstance(inner, str):
                yield inner
            else:
                yield from _files(inner)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_links_to_nothing_outside_the_site(page: Path) -> None:
    assert not OUTSIDE.findall(page.read_text(encoding="utf-8"))
