"""Zero data retention: where it is required, nothing is stored, and what was stored before has gone.

It is set for a team, a project of it or an environment of a project, and holds for all below.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, Table, delete, insert, select, update

from sidecar.responses.level import ALL, Level
from sidecar.store import now_us
from sidecar.store.tables import idempotency_keys, stored_responses, zero_retention
from sidecar.stored.locks import alone
from sidecar.stored.owner import Owner


def forbidden(connection: Connection, owners: Collection[Owner]) -> set[Owner]:
    """Those of ``owners`` for whom nothing may be stored."""
    levels = levels_of(connection, {owner.organization for owner in owners})
    return {owner for owner in owners if any(level.covers(owner) for level in levels)}


def levels_of(connection: Connection, organizations: Collection[str]) -> Sequence[Level]:
    """The levels of these teams at which zero data retention is required."""
    rows = zero_retention.c
    wanted = select(rows.organization_id, rows.project, rows.environment)
    order = (rows.organization_id, rows.project, rows.environment)
    found = connection.execute(wanted.where(rows.organization_id.in_(organizations)).order_by(*order))
    return [Level(*row) for row in found]


def require(connection: Connection, level: Level) -> int:
    """Require it from now on; how many responses have gone by that. What they held is deleted later, some at a time."""
    alone(connection, level.organization)
    if level not in levels_of(connection, {level.organization}):
        values = {"organization_id": level.organization, "project": level.project, "environment": level.environment}
        connection.execute(insert(zero_retention).values(**values, created_at=now_us(connection)))
    return end_all(connection, level)


def no_longer_require(connection: Connection, level: Level) -> bool:
    """Require it no longer at this level; whether it was. Levels above and below stay as they are."""
    alone(connection, level.organization)
    rows = zero_retention.c
    mine = (rows.organization_id == level.organization) & (rows.project == level.project)
    return bool(
        connection.execute(delete(zero_retention).where(mine & (rows.environment == level.environment))).rowcount
    )


def end_all(connection: Connection, level: Level) -> int:
    """Let all responses at a level and below expire as if that were long ago; how many there were.

    The answers that idempotency keys stand for go with them; who holds a key goes on holding it.
    """
    keys = idempotency_keys
    connection.execute(update(keys).where(_below(keys, level), keys.c.answered_at.is_not(None)).values(expires_at=0))
    rows = stored_responses
    ended = update(rows).where(_below(rows, level), rows.c.expires_at > 0).values(expires_at=0)
    return connection.execute(ended).rowcount


def _below(table: Table, level: Level) -> ColumnElement[bool]:
    """What is of a level or below."""
    rows = table.c
    mine = rows.organization_id == level.organization
    if level.project != ALL:
        mine &= rows.project == level.project
    if level.environment != ALL:
        mine &= rows.environment == level.environment
    return mine
