"""The ledger's SQL: each statement is for any number of rows, which come as one JSON document.

Both engines read rows out of JSON, so that a transaction has the same few statements whatever it is for, each with a
text that never changes. Rows are locked in the order of their keys, so that no two transactions wait for each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, TextClause, text

Columns = Mapping[str, str]
"""Names and SQL types of the rows that come as JSON."""

# The number of the transaction that writes a record; one writes at a time on SQLite.
_TRANSACTION = {"postgresql": "CAST(CAST(pg_current_xact_id() AS text) AS bigint)", "sqlite": "0"}


class Statement:
    """One statement. In its text ``{rows}`` stands for the rows, as a table ``v``, and ``{names}`` for their columns;
    ``{lock}`` locks the rows of the table ``t``, ``{transaction}`` is the number of the transaction."""

    def __init__(self, sql: str, columns: Columns) -> None:
        self._texts: dict[str, TextClause] = {
            dialect: text(
                sql.format(
                    rows=_rows(columns, dialect),
                    names=", ".join(columns),
                    lock="FOR UPDATE OF t" if dialect == "postgresql" else "",
                    transaction=transaction,
                )
            )
            for dialect, transaction in _TRANSACTION.items()
        }

    def run(self, connection: Connection, rows: Iterable[Mapping[str, object]]) -> Sequence[Row[Any]]:
        """Execute it for ``rows``; what it returns. Nothing is executed for no rows."""
        document = list(rows)
        if not document:
            return ()
        result = connection.execute(self._texts[connection.dialect.name], {"rows": json.dumps(document)})
        return result.all() if result.returns_rows else ()


def _rows(columns: Columns, dialect: str) -> str:
    if dialect == "postgresql":
        definition = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        return f"json_to_recordset(CAST(:rows AS json)) AS v({definition})"
    members = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in columns)
    return f"(SELECT {members} FROM json_each(:rows)) AS v"


_ID = {"id": "text"}
_ORGANIZATION = {"organization_id": "text"}
BALANCE_KEY = {"organization_id": "text", "model": "text", "kind": "text", "period": "text"}
_BALANCE = {**BALANCE_KEY, "level": "bigint", "updated_at": "bigint"}
IS_BALANCE = "t.organization_id = v.organization_id AND t.model = v.model AND t.kind = v.kind AND t.period = v.period"
# A cross join has SQLite read the rows first, and look each up.
_KEYS = "t.organization_id, t.model, t.kind, t.period"

FIND_LIMITS = Statement(
    "SELECT t.* FROM {rows} CROSS JOIN limits t WHERE t.organization_id = v.organization_id", _ORGANIZATION
)
FIND_PREPAID = Statement(
    "SELECT t.id FROM {rows} CROSS JOIN organizations t WHERE t.id = v.organization_id AND t.prepaid", _ORGANIZATION
)

LOCK_RESERVATIONS = Statement(
    "SELECT t.* FROM {rows} CROSS JOIN reservations t WHERE t.id = v.id ORDER BY t.id {lock}", _ID
)
_RESERVATION = {
    **_ID,
    "request_id": "text",
    "organization_id": "text",
    "credential_id": "text",
    "model": "text",
    "node": "text",
    "worker": "text",
    "created_at": "bigint",
    "tokens": "bigint",
    "input_tokens": "bigint",
    "image_bytes": "bigint",
    "hold": "bigint",
    "taken": "text",
    "end_user": "text",
    "tags": "text",
    "stream": "boolean",
    "settled_at": "bigint",
    "project": "text",
    "environment": "text",
    "endpoint": "text",
    "told_model": "text",
    "session": "text",
    "client_request_id": "text",
}
_ADD_RESERVATIONS = (
    "INSERT INTO reservations ({names}, delivered_output, delivered_reasoning) SELECT {names}, 0, 0 FROM {rows}"
)
ADD_RESERVATIONS = Statement(_ADD_RESERVATIONS, _RESERVATION)
ADD_REFUSALS = Statement(
    _ADD_RESERVATIONS + " WHERE true ORDER BY id ON CONFLICT DO NOTHING", {**_RESERVATION, "refusal": "text"}
)
END_RESERVATIONS = Statement(
    "UPDATE reservations AS t SET settled_at = v.settled_at, image_bytes = v.image_bytes FROM {rows} WHERE t.id = v.id",
    {**_ID, "settled_at": "bigint", "image_bytes": "bigint"},
)

FIND_RECORDS = Statement("SELECT t.* FROM {rows} CROSS JOIN usage_records t WHERE t.id = v.id", _ID)
ADD_RECORDS = Statement(
    "INSERT INTO usage_records ({names}, txid) SELECT {names}, {transaction} FROM {rows}",
    {
        **_ID,
        "request_id": "text",
        "organization_id": "text",
        "credential_id": "text",
        "model": "text",
        "node": "text",
        "input_tokens": "bigint",
        "cached_tokens": "bigint",
        "output_tokens": "bigint",
        "reasoning_tokens": "bigint",
        "guided_tokens": "bigint",
        "image_bytes": "bigint",
        "price": "bigint",
        "price_terms": "text",
        "outcome": "text",
        "stream": "boolean",
        "started_at": "bigint",
        "first_token_ms": "bigint",
        "total_ms": "bigint",
        "end_user": "text",
        "tags": "text",
        "created_at": "bigint",
        "session": "text",
        "attempts": "text",
    },
)

# SQLite needs the WHERE: without it, ON would begin the condition of a join.
ADD_BALANCES = Statement(
    "INSERT INTO balances ({names}) SELECT {names} FROM {rows} WHERE true ORDER BY "
    + ", ".join(BALANCE_KEY)
    + " ON CONFLICT DO NOTHING",
    _BALANCE,
)
LOCK_BALANCES = Statement(
    f"SELECT t.* FROM {{rows}} CROSS JOIN balances t WHERE {IS_BALANCE} ORDER BY {_KEYS} {{lock}}", BALANCE_KEY
)
SET_BALANCES = Statement(
    f"UPDATE balances AS t SET level = v.level, updated_at = v.updated_at FROM {{rows}} WHERE {IS_BALANCE}", _BALANCE
)

LOCK_ACCOUNTS = Statement(
    "SELECT t.* FROM {rows} CROSS JOIN accounts t WHERE t.organization_id = v.organization_id "
    "ORDER BY t.organization_id {lock}",
    _ORGANIZATION,
)
SET_ACCOUNTS = Statement(
    "UPDATE accounts AS t SET balance = v.balance, held = v.held FROM {rows} "
    "WHERE t.organization_id = v.organization_id",
    {**_ORGANIZATION, "balance": "bigint", "held": "bigint"},
)
