"""Balances as the store has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection

from sidecar.admission import statements
from sidecar.admission.balances import Key, Level


def lock_balances(connection: Connection, keys: Iterable[Key]) -> dict[Key, Level]:
    """Those of ``keys`` that are there, which nobody else changes until the transaction has ended."""
    rows = statements.LOCK_BALANCES.run(connection, [key._asdict() for key in sorted(keys)])
    return {Key(row.organization_id, row.model, row.kind, row.period): Level(row.level, row.updated_at) for row in rows}


def write_balances(connection: Connection, levels: Mapping[Key, Level]) -> None:
    """Give balances that are locked new levels."""
    statements.SET_BALANCES.run(connection, balance_rows(levels))


def balance_rows(levels: Mapping[Key, Level]) -> list[dict[str, object]]:
    """Rows of the table, in the order in which they are locked."""
    return [{**key._asdict(), **level._asdict()} for key, level in sorted(levels.items())]
