"""How directives are shown: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sidecar.admission.directives import MEMBERS, NONE, Directives, applied
from sidecar.cli.listing import print_json, print_table
from sidecar.responses.level import ALL, Level

_Levels = Sequence[tuple[Level, Directives]]
_ZERO = "zero_data_retention"


def show_level(level: Level, directives: Directives, retains_nothing: bool, *, as_json: bool) -> None:
    """What is set at one level."""
    rows = [("command", level, directives, retains_nothing)]
    _show([_members(*row) for row in rows], as_json=as_json)


def show_all(
    asked: Level, found: _Levels, configured: _Levels, retains_nothing: Collection[Level], *, as_json: bool
) -> None:
    """What commands and the configuration have set for a team, and at the end what holds at the level ``asked``."""
    levels = [level for level, _ in found]
    only_zero = [(level, NONE) for level in retains_nothing if level not in levels]
    rows = [
        *(("command", level, directives, level in retains_nothing) for level, directives in [*found, *only_zero]),
        *(
            ("configuration", level, directives, False)
            for level, directives in configured
            if level.organization in (ALL, asked.organization)
        ),
    ]
    zero = any(level.covers(asked) for level in retains_nothing)
    whole = ("applied", asked, applied([*found, *configured], asked), zero)
    _show([_members(*row) for row in (*rows, whole)], as_json=as_json)


def _members(source: str, level: Level, directives: Directives, retains_nothing: bool) -> dict[str, Any]:
    place = {"organization": level.organization, "project": level.project, "environment": level.environment}
    return {"set_by": source, **place, **{name: getattr(directives, name) for name in MEMBERS}, _ZERO: retains_nothing}


def _show(rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    table = [[row["set_by"], row["project"], row["environment"], _words(row)] for row in rows]
    print_table(("Set by", "Project", "Environment", "Directives"), table)


def _words(row: dict[str, Any]) -> str:
    told = [f"{name} {_text(row[name])}" for name in MEMBERS if row[name] is not None]
    return ", ".join([*told, *([_ZERO] if row[_ZERO] else [])]) or "-"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return (" and ".join(value) or "nobody") if isinstance(value, tuple) else str(value)
