"""Removing: one response for its owner, and what has expired, some at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Table, delete, select, text, update

from sidecar.store import now_us
from sidecar.store.tables import idempotency_answers, idempotency_keys, stored_responses
from sidecar.stored.keep import GRACE
from sidecar.stored.owner import Owner

MOST_AT_ONCE = 200
"""How many responses a transaction removes at most, and how many idempotency keys."""
MOST_BYTES_AT_ONCE = 32 * 1024 * 1024
"""And how many bytes of each, unless one alone has more."""

# Of this project alone, on a server that others use too.
_TRY_LOCK = text("SELECT pg_try_advisory_xact_lock(7202571936448023120)")


@dataclass(frozen=True, slots=True)
class Removal:
    """A response that its owner wants to be removed, made or still being made."""

    id: str
    owner: Owner


class Remove:
    """The operation of :class:`~sidecar.store.Store` that removes; the result is whether the response was there.

    A second attempt at what the first one has done finds nothing: the store repeats only what was rolled back.
    """

    def perform(self, connection: Connection, items: Sequence[Removal]) -> Sequence[bool]:
        """Remove those that are their owner's. The contents go with them."""
        now, rows = now_us(connection), stored_responses.c
        removed: dict[Removal, bool] = {}
        for item in sorted(set(items), key=lambda item: item.id):
            mine = (rows.organization_id == item.owner.organization) & (rows.project == item.owner.project)
            mine &= (rows.environment == item.owner.environment) & (rows.expires_at > now) & (rows.id == item.id)
            removed[item] = bool(connection.execute(delete(stored_responses).where(mine)).rowcount)
            if removed[item]:
                _withhold(connection, item)
        return [removed[item] for item in items]


class Expire:
    """The operation of :class:`~sidecar.store.Store` that removes what has expired; the result is whether more is left.

    Any worker of any node may do it, and one at a time does: the transaction holds a lock for which no other waits.
    """

    def perform(self, connection: Connection, items: Sequence[None]) -> Sequence[bool]:
        """Remove some of it, unless another worker is at it."""
        if connection.dialect.name == "postgresql" and not connection.execute(_TRY_LOCK).scalar_one():
            return [False for _ in items]
        more = remove_some(connection)
        return [more for _ in items]


def remove_some(connection: Connection) -> bool:
    """Remove some of what has expired and cannot be brought back; whether more is left."""
    now = now_us(connection)
    more_responses = _remove_some(connection, stored_responses, "item_bytes", now - GRACE)
    return _remove_some(connection, idempotency_keys, "bytes", now) or more_responses


def _remove_some(connection: Connection, table: Table, size: str, before: int) -> bool:
    rows = table.c
    old = select(rows.id, rows[size].label("size")).where(rows.expires_at < before)
    found = connection.execute(old.order_by(rows.expires_at, rows.id).limit(MOST_AT_ONCE + 1)).all()
    chosen, total = list[str](), 0
    for row in found[:MOST_AT_ONCE]:
        if chosen and total + row.size > MOST_BYTES_AT_ONCE:
            break
        chosen.append(row.id)
        total += row.size
    if chosen:
        connection.execute(delete(table).where(rows.id.in_(chosen)))
    return len(chosen) < len(found)


def _withhold(connection: Connection, removed: Removal) -> None:
    """Of a response that was deleted, an idempotency key does not keep the answer either."""
    rows, owner = idempotency_keys.c, removed.owner
    mine = (rows.attempt == removed.id.removeprefix("resp_")) & (rows.organization_id == owner.organization)
    mine &= (rows.project == owner.project) & (rows.environment == owner.environment)
    connection.execute(delete(idempotency_answers).where(idempotency_answers.c.id.in_(select(rows.id).where(mine))))
    connection.execute(update(idempotency_keys).where(mine).values(withheld=True, bytes=0))
