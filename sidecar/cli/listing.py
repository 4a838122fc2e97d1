"""How commands show what is in the store: as a table for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import typer
from rich.console import Console
from rich.table import Table

Value = str | int | bool | None | Sequence[str] | Mapping[str, "Value"]


def print_json(value: object) -> None:
    """``value`` on standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on standard output: as wide as the terminal, or as its contents where there is none."""
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        # Names are an operator's own; brackets in them are no markup.
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=1000)
    console.print(table)


def time_of(microseconds: int | None) -> str | None:
    """A time as ISO 8601 has it, to the second."""
    if microseconds is None:
        return None
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
