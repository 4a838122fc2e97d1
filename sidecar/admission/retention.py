"""Deletes what the ledger has kept for long enough: usage records, with the reservations that they came from.

Any worker of any node may do it, and one at a time does: the transaction holds a lock for which no other waits. A
transaction deletes a bounded number of the oldest records, so that nobody waits for it for long.

What the deleted records cost stays in the ledger: as one entry of each account, so that its sums still agree. An open
reservation is never deleted. Nor is the newest record, so that a reader of the feed who has read everything finds its
place again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, exists, insert, select, text, update

from sidecar.admission.bill import CARRIED_FORWARD, CORRECTION
from sidecar.admission.periods import DAY
from sidecar.store import now_us
from sidecar.store.tables import accounts, credit_entries, reservations, usage_records

MOST_AT_ONCE = 500
"""How many records a transaction deletes at most."""

# Of this project alone, on a server that others use too.
_TRY_LOCK = text("SELECT pg_try_advisory_xact_lock(7202571936448023119)")


class Retention:
    """The operation of :class:`~sidecar.store.Store` that deletes. An item is for how many days records are kept.

    The result is whether more is left to be deleted.
    """

    def perform(self, connection: Connection, items: Sequence[int]) -> Sequence[bool]:
        """Delete some of what is too old, unless another worker is at it."""
        if connection.dialect.name == "postgresql" and not connection.execute(_TRY_LOCK).scalar_one():
            return [False for _ in items]
        return [_delete_some(connection, now_us(connection) - days * DAY) for days in items]


def _delete_some(connection: Connection, before: int) -> bool:
    """Delete the oldest records among those written ``before``; whether there were as many as are deleted at once."""
    records = usage_records.c
    wanted = select(records.id, records.organization_id, records.price, records.created_at)
    oldest = connection.execute(wanted.order_by(records.txid, records.position).limit(MOST_AT_ONCE + 1)).all()
    # The last one is the newest of all, or comes the next time.
    old = [row for row in oldest[:-1] if row.created_at < before]
    if old:
        _carry_forward(connection, old)
        connection.execute(delete(usage_records).where(records.id.in_([row.id for row in old])))
    _delete_reservations(connection, before)
    return len(old) == MOST_AT_ONCE


def _carry_forward(connection: Connection, rows: Sequence[Any]) -> None:
    """Charge in one entry for each account what its deleted records have charged."""
    charged = Counter[str]()
    for row in rows:
        charged[row.organization_id] += row.price
    known = set(connection.scalars(select(accounts.c.organization_id).where(accounts.c.organization_id.in_(charged))))
    for organization in sorted(known & {name for name, price in charged.items() if price}):
        id_, amount = f"{CARRIED_FORWARD}{organization}", -charged[organization]
        entry = credit_entries.c.id == id_
        done = connection.execute(update(credit_entries).where(entry).values(amount=credit_entries.c.amount + amount))
        if not done.rowcount:
            reason = "the price of usage records that are no longer kept"
            values = {"id": id_, "organization_id": organization, "amount": amount, "reason": reason}
            connection.execute(insert(credit_entries).values(**values, created_at=now_us(connection)))


def _delete_reservations(connection: Connection, before: int) -> None:
    """Delete some reservations that were settled ``before`` and whose records have been deleted."""
    mine = reservations.c
    recorded = exists().where(usage_records.c.id.in_([mine.id, mine.id + CORRECTION]))
    old = select(mine.id).where(mine.settled_at < before, ~recorded).limit(MOST_AT_ONCE)
    connection.execute(delete(reservations).where(mine.id.in_(old)))
