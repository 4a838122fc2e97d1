"""What a spool knows of organizations: a copy of the terms, credits and used quotas that the store has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, and_, delete, select

from sidecar.admission.limits import ANY
from sidecar.store import now_us
from sidecar.store.tables import accounts, balances, limits, organizations

Rows = Sequence[Mapping[str, Any]]

_KEPT_US = 600_000_000
_QUOTA = balances.c.kind == "quota"


class Copied(NamedTuple):
    """Of the organizations ``names`` the rows of the tables with these names; ``balances`` are those of quotas."""

    names: Sequence[str]
    organizations: Rows
    limits: Rows
    accounts: Rows
    balances: Rows


def read_mirror(connection: Connection, names: Sequence[str]) -> Copied:
    """What the store has of the organizations ``names``, and the limits that hold for all."""
    found = _rows(connection, organizations, organizations.c.id.in_(names))
    # An organization of an operator's own authentication need not stand in the store.
    others = set(names) - {row["id"] for row in found}
    return Copied(
        names,
        [*found, *({"id": name, "name": name, "prepaid": False, "disabled_at": None} for name in sorted(others))],
        _rows(connection, limits, limits.c.organization_id.in_([*names, ANY])),
        _rows(connection, accounts, accounts.c.organization_id.in_(names)),
        _rows(connection, balances, and_(_QUOTA, balances.c.organization_id.in_(names))),
    )


class Mirror:
    """The operation that puts a copy in the place of an earlier one, and removes those that are ten minutes old.

    In a spool the time at which an organization was made is the time of its copy.
    """

    def perform(self, connection: Connection, items: Sequence[Copied]) -> Sequence[None]:
        """Keep ``items``, the later ones in the place of earlier ones."""
        for copied in items:
            _replace(connection, copied, now_us(connection))
        return [None] * len(items)


def _replace(connection: Connection, copied: Copied, now: int) -> None:
    old = select(organizations.c.id).where(organizations.c.created_at < now - _KEPT_US)
    gone = [*copied.names, *connection.scalars(old)]
    connection.execute(delete(balances).where(_QUOTA, balances.c.organization_id.in_(gone)))
    connection.execute(delete(limits).where(limits.c.organization_id.in_([*gone, ANY])))
    connection.execute(delete(accounts).where(accounts.c.organization_id.in_(gone)))
    connection.execute(delete(organizations).where(organizations.c.id.in_(gone)))
    organized = [{**row, "created_at": now} for row in copied.organizations]
    for table, rows in (
        (organizations, organized),
        (limits, copied.limits),
        (accounts, copied.accounts),
        (balances, copied.balances),
    ):
        if rows:
            connection.execute(table.insert(), list(rows))


def _rows(connection: Connection, table: Table, condition: Any) -> Rows:
    return [dict(row) for row in connection.execute(select(table).where(condition)).mappings()]
