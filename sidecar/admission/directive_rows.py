"""Directives as the store has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select

from sidecar.admission.directives import MEMBERS, NONE, Directives
from sidecar.responses.level import Level
from sidecar.store.tables import directives

_rows = directives.c


def read_directives(connection: Connection, organizations: Collection[str]) -> Sequence[tuple[Level, Directives]]:
    """The directives of these teams, by level."""
    wanted = select(directives).where(_rows.organization_id.in_(organizations))
    found = connection.execute(wanted.order_by(_rows.organization_id, _rows.project, _rows.environment))
    return [(Level(row.organization_id, row.project, row.environment), _directives(row)) for row in found]


def set_directives(connection: Connection, level: Level, changes: Mapping[str, Any]) -> Directives:
    """Change the directives of a level, and tell what they are then; what is not named stays.

    ``changes`` are members of :class:`Directives`; ``None`` is inherited again.
    """
    row = connection.execute(select(directives).where(_is(level)).with_for_update()).one_or_none()
    changed = replace(NONE if row is None else _directives(row), **changes)
    clear_directives(connection, level)
    if changed != NONE:
        vendors = changed.excluded_vendors
        values = {name: getattr(changed, name) for name in MEMBERS}
        values["excluded_vendors"] = None if vendors is None else " ".join(vendors)
        place = {"organization_id": level.organization, "project": level.project, "environment": level.environment}
        connection.execute(insert(directives).values(**place, **values))
    return changed


def clear_directives(connection: Connection, level: Level) -> bool:
    """Have nothing set at a level; whether anything was."""
    return bool(connection.execute(delete(directives).where(_is(level))).rowcount)


def _is(level: Level) -> ColumnElement[bool]:
    mine: ColumnElement[bool] = _rows.organization_id == level.organization
    return mine & (_rows.project == level.project) & (_rows.environment == level.environment)


def _directives(row: Row[Any]) -> Directives:
    values = {name: row._mapping[name] for name in MEMBERS}
    vendors = values["excluded_vendors"]
    return Directives(**{**values, "excluded_vendors": None if vendors is None else tuple(vendors.split())})
