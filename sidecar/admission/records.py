"""The ledger's usage records in an order in which they can be read on: nothing is ever added before what was read.

They are sorted by the transaction that wrote them and, within it, by position. On PostgreSQL a transaction that began
earlier may commit later, with positions that a reader has passed; so records are shown once no transaction runs that
began before theirs. Source: "Transaction ID and Snapshot Information Functions" in PostgreSQL's manual.

A reader's place is the id of the last record that it has read. It stays right when the store is moved or restored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select, text, tuple_, update

from sidecar.store import settled_below
from sidecar.store.tables import usage_records

_NEXT_TRANSACTION = text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")


class UnknownPlaceError(Exception):
    """The record at a reader's place is not, or no longer, in the store: records after it may be missing too."""


def read_on(connection: Connection, after: str, most: int) -> Sequence[Row[Any]]:
    """At most ``most`` records after the one whose id is ``after``, or from the first where that is empty.

    Raises:
        UnknownPlaceError: there is no such record.
    """
    columns = usage_records.c
    order = (columns.txid, columns.position)
    wanted = select(usage_records).where(columns.txid < settled_below(connection))
    if after:
        place = connection.execute(select(*order).where(columns.id == after)).one_or_none()
        if place is None:
            raise UnknownPlaceError
        wanted = wanted.where(tuple_(*order) > tuple_(*place))
    return connection.execute(wanted.order_by(*order).limit(most)).all()


class Adoption:
    """The operation of :class:`~sidecar.store.Store` that puts a back-up's records before all that is written later.

    Restored on another PostgreSQL server, they have numbers of transactions that may be far ahead of those that the
    server gives: they would not be shown until it gets there, and then be shown late.
    """

    def perform(self, connection: Connection, items: Sequence[None]) -> Sequence[None]:
        """Look whether there are such records, and number them anew."""
        columns = usage_records.c
        if connection.dialect.name == "postgresql":
            newest = connection.scalar(select(columns.txid).order_by(columns.txid.desc()).limit(1))
            if newest is not None and newest >= int(connection.execute(_NEXT_TRANSACTION).scalar_one()):
                connection.execute(update(usage_records).values(txid=0))
        return items
