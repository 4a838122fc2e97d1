"""The teams' data keys in the store: made when they are first needed, wrapped anew, and thrown away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, select, text, update
from sqlalchemy.sql.functions import count

from sidecar.responses.ids import ulid
from sidecar.responses.level import Level
from sidecar.store import now_us
from sidecar.store.tables import stored_keys
from sidecar.stored.locks import alone, share
from sidecar.stored.master_keys import KEY_BYTES, NONCE_BYTES, MasterKeys
from sidecar.stored.seals import DataKey
from sidecar.stored.zero_retention import end_all

Random = Callable[[int], bytes]
"""So many random bytes, as ``os.urandom`` gives them."""

# Another node may have been faster.
_ADD = text(
    "INSERT INTO stored_keys (id, organization_id, wrapped, master, created_at)"
    " VALUES (:id, :organization_id, :wrapped, :master, :created_at) ON CONFLICT DO NOTHING"
)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A data key that a team is offered."""

    id: str
    organization: str
    wrapped: bytes
    master: str

    @classmethod
    def make(cls, masters: MasterKeys, organization: str, random: Random, unix_ms: int) -> NewKey:
        """A fresh one."""
        id_ = f"dk_{ulid(unix_ms, random(10))}"
        wrapped = masters.wrap(random(KEY_BYTES), id_, organization, random(NONCE_BYTES))
        return cls(id_, organization, wrapped, masters.first)


class AddKey:
    """The operation of :class:`~sidecar.store.Store` that gives a team the key it is offered, unless it has one."""

    def perform(self, connection: Connection, items: Sequence[NewKey]) -> Sequence[None]:
        """Add the first key offered to each team without one; in the order of the teams, so that nobody deadlocks."""
        offered = {item.organization: item for item in reversed(items)}
        share(connection, offered)
        found = select(stored_keys.c.organization_id).where(stored_keys.c.organization_id.in_(offered))
        for organization in sorted(offered.keys() - set(connection.scalars(found))):
            _add(connection, offered[organization])
        return [None for _ in items]


def key_of(connection: Connection, masters: MasterKeys, organization: str) -> DataKey | None:
    """A team's data key; ``None`` where it has none yet.

    Raises:
        KeyUnknown: no master key opens it.
    """
    row = connection.execute(select(stored_keys).where(stored_keys.c.organization_id == organization)).one_or_none()
    return None if row is None else DataKey(row.id, _unwrapped(masters, row))


def unopened(connection: Connection, masters: MasterKeys) -> Sequence[tuple[str, int]]:
    """The fingerprints of master keys that have wrapped data keys and are not here, and how many data keys each."""
    counted = select(stored_keys.c.master, count()).group_by(stored_keys.c.master).order_by(stored_keys.c.master)
    return [(master, number) for master, number in connection.execute(counted) if master not in masters]


def wrap_anew(connection: Connection, masters: MasterKeys, random: Random) -> int:
    """Wrap all data keys with the first of the master keys; how many were wrapped by another.

    Raises:
        KeyUnknown: no master key opens one; nothing has been changed then.
    """
    other = select(stored_keys).where(stored_keys.c.master != masters.first).order_by(stored_keys.c.id)
    rows = connection.execute(other.with_for_update()).all()
    for row in rows:
        wrapped = masters.wrap(_unwrapped(masters, row), row.id, row.organization_id, random(NONCE_BYTES))
        mine = update(stored_keys).where(stored_keys.c.id == row.id)
        connection.execute(mine.values(wrapped=wrapped, master=masters.first))
    return len(rows)


def shred(connection: Connection, organization: str) -> int | None:
    """Throw a team's data key away, without which nothing that was stored can be read; how many responses have gone.

    ``None`` where it had no key. Its next response has a new one.
    """
    alone(connection, organization)
    if connection.dialect.name == "sqlite":
        # What is deleted is overwritten, rather than left in the file until its place is needed.
        connection.exec_driver_sql("PRAGMA secure_delete=ON")
    gone = connection.execute(delete(stored_keys).where(stored_keys.c.organization_id == organization)).rowcount
    ended = end_all(connection, Level(organization))
    return ended if gone else None


def _add(connection: Connection, key: NewKey) -> None:
    values = {"id": key.id, "organization_id": key.organization, "wrapped": key.wrapped, "master": key.master}
    connection.execute(_ADD, {**values, "created_at": now_us(connection)})


def _unwrapped(masters: MasterKeys, row: Row[Any]) -> bytes:
    return masters.unwrap(row.wrapped, row.master, row.id, row.organization_id)
