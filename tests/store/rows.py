"""Rows as releases wrote them, for stores that hold data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, LargeBinary, MetaData, Table, select

DATA = Path(__file__).parent / "data"

# The columns that hold bytes.
_BYTES = {
    "credentials": ("digest",),
    "stored_keys": ("wrapped",),
    "stored_contents": ("input", "output", "response"),
    "idempotency_answers": ("answer",),
}

Rows = dict[str, list[dict[str, Any]]]


def rows_of(version: str) -> Rows:
    """What a release of this version of the schema wrote."""
    rows: Rows = json.loads((DATA / f"{version}.json").read_text())
    for table, columns in _BYTES.items():
        for row in rows.get(table, ()):
            row.update({column: bytes.fromhex(row[column]) for column in columns})
    return rows


def fill(connection: Connection, rows: Rows) -> None:
    """Write the rows into the tables that there are."""
    for table in reflected(connection).sorted_tables:
        if table.name in rows:
            connection.execute(table.insert(), rows[table.name])


def contents(connection: Connection) -> Rows:
    """All rows of all tables."""
    return {table.name: _all_rows(connection, table) for table in reflected(connection).sorted_tables}


def reflected(connection: Connection) -> MetaData:
    """The tables as the store itself describes them."""
    tables = MetaData()
    tables.reflect(connection)
    tables.remove(tables.tables["alembic_version"])
    if "sqlite_sequence" in tables.tables:
        tables.remove(tables.tables["sqlite_sequence"])
    return tables


def _all_rows(connection: Connection, table: Table) -> list[dict[str, Any]]:
    order = [column for column in table.columns if not isinstance(column.type, LargeBinary)]
    return [dict(row) for row in connection.execute(select(table).order_by(*order)).mappings()]
