"""Storing: a response that is being made is announced, and is stored as a whole when it is over, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, text, update

from sidecar.store import now_us
from sidecar.store.tables import stored_contents, stored_keys, stored_responses
from sidecar.stored.locks import share
from sidecar.stored.record import KEPT, SealedRecord
from sidecar.stored.seals import Place
from sidecar.stored.zero_retention import forbidden

MINUTE = 60_000_000
LONGEST = 15 * MINUTE
"""A response that has been announced and not stored by then, in microseconds, never will be."""
GRACE = 15 * MINUTE
"""What has expired can still be brought back for so long, by a turn that had continued it before."""

_LOCK = {"postgresql": "FOR UPDATE", "sqlite": ""}
# The rows are locked in the order of their ids, as everybody does who locks several.
_EXTEND = {
    dialect: text(
        f"""
WITH RECURSIVE chain (id, previous_id) AS (
    SELECT id, previous_id FROM stored_responses WHERE id IN :ids
    UNION
    SELECT t.id, t.previous_id FROM chain c JOIN stored_responses t ON t.id = c.previous_id
), locked AS (
    SELECT id FROM stored_responses
    WHERE id IN (SELECT id FROM chain) AND expires_at > :gone AND expires_at < :expires_at
    ORDER BY id {lock}
)
UPDATE stored_responses SET expires_at = :expires_at WHERE id IN (SELECT id FROM locked)
"""
    ).bindparams(bindparam("ids", expanding=True))
    for dialect, lock in _LOCK.items()
}


class Kept(Enum):
    """What became of a response that was to be stored."""

    STORED = auto()
    FORBIDDEN = auto()
    """Zero data retention is required."""
    DELETED = auto()
    """It was deleted while it was being made, by its client or with all others, or took too long."""
    KEY_GONE = auto()
    """The team's data key is another by now."""


class Announce:
    """The operation of :class:`~sidecar.store.Store` that announces; the result is whether it may be stored.

    An item is where a response will be stored that is being made.
    """

    def perform(self, connection: Connection, items: Sequence[Place]) -> Sequence[bool]:
        """Announce all for whom something may be stored."""
        share(connection, (item.owner.organization for item in items))
        refused = forbidden(connection, {item.owner for item in items})
        announced = [item for item in items if item.owner not in refused]
        there = _rows_of(connection, (place.response_id for place in announced))
        now = now_us(connection)
        new = [_row(place, now) for place in announced if place.response_id not in there]
        if new:
            connection.execute(insert(stored_responses), new)
        return [item.owner not in refused for item in items]


class Keep:
    """The operation of :class:`~sidecar.store.Store` that stores, and extends the chains that were continued."""

    def perform(self, connection: Connection, items: Sequence[SealedRecord]) -> Sequence[Kept]:
        """Store all that may be."""
        owners = {item.place.owner for item in items}
        share(connection, (owner.organization for owner in owners))
        refused = forbidden(connection, owners)
        keys = set(connection.scalars(select(stored_keys.c.id).where(stored_keys.c.id.in_({i.key_id for i in items}))))
        there = _rows_of(connection, (item.place.response_id for item in items))
        outcomes = [_outcome(item, item.place.owner in refused, keys, there) for item in items]
        stored = [item for item, outcome in zip(items, outcomes, strict=True) if outcome is Kept.STORED]
        # Those that an earlier attempt has stored stay as they are.
        _store(connection, [item for item in stored if there.get(item.place.response_id) is not _Found.STORED], there)
        return outcomes


class Withdraw:
    """The operation of :class:`~sidecar.store.Store` that takes announcements back; an item is a response's id."""

    def perform(self, connection: Connection, items: Sequence[str]) -> Sequence[None]:
        """Forget those that have not been stored."""
        rows = stored_responses.c
        for id_ in sorted(items):
            connection.execute(delete(stored_responses).where(rows.id == id_, rows.stored_at.is_(None)))
        return [None for _ in items]


class _Found(Enum):
    """What is in the store of a response."""

    MADE = auto()
    STORED = auto()
    ENDED = auto()
    """It was ended with all others of its level or has long expired, and its row is yet to be removed."""


def _rows_of(connection: Connection, ids: Iterable[str]) -> dict[str, _Found]:
    """What is there of these responses, by id; nobody else changes it meanwhile."""
    rows, gone = stored_responses.c, now_us(connection) - GRACE
    wanted = select(rows.id, rows.stored_at, rows.expires_at).where(rows.id.in_(list(ids)))
    return {
        row.id: _Found.ENDED if row.expires_at <= gone else _Found.MADE if row.stored_at is None else _Found.STORED
        for row in connection.execute(wanted.order_by(rows.id).with_for_update())
    }


def _outcome(item: SealedRecord, refused: bool, keys: Collection[str], there: Mapping[str, _Found]) -> Kept:
    found = there.get(item.place.response_id)
    if refused:
        return Kept.FORBIDDEN
    if found is _Found.STORED:
        return Kept.STORED
    if found is _Found.ENDED or (item.announced and found is None):
        return Kept.DELETED
    return Kept.STORED if item.key_id in keys else Kept.KEY_GONE


def _store(connection: Connection, items: Sequence[SealedRecord], there: Collection[str]) -> None:
    if not items:
        return
    now = now_us(connection)
    expires_at = now + KEPT
    new = [_row(item.place, now) for item in items if item.place.response_id not in there]
    if new:
        connection.execute(insert(stored_responses), new)
    for item in items:
        mine = update(stored_responses).where(stored_responses.c.id == item.place.response_id)
        connection.execute(mine.values(stored_at=now, item_bytes=item.item_bytes))
    connection.execute(insert(stored_contents), [_contents(item) for item in items])
    ids = [item.place.response_id for item in items]
    asked = {"ids": ids, "expires_at": expires_at, "gone": now - GRACE}
    connection.execute(_EXTEND[connection.dialect.name], asked)


def _row(place: Place, now: int) -> dict[str, Any]:
    return {
        "id": place.response_id,
        "organization_id": place.owner.organization,
        "project": place.owner.project,
        "environment": place.owner.environment,
        "previous_id": place.previous_id,
        "created_at": now,
        "stored_at": None,
        "expires_at": now + LONGEST,
        "item_bytes": 0,
    }


def _contents(item: SealedRecord) -> dict[str, Any]:
    return {
        "response_id": item.place.response_id,
        "key_id": item.key_id,
        "input": item.input,
        "output": item.output,
        "response": item.response,
    }
