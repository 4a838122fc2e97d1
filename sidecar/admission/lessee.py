"""The leases of one worker in the ledger's transactions, and how they are given back, by it or in its place.

They stand in a table, in rows that only their worker changes. So what happens to them is committed with what it is
for, and nothing is lost with a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, text

from sidecar.admission.balance_rows import lock_balances, write_balances
from sidecar.admission.balances import RATES, Balances, Key, Level, Limit
from sidecar.admission.leases import Flow, Lease, left_in, moved, seen_as, slice_of, suffices
from sidecar.admission.periods import SECOND
from sidecar.admission.statements import BALANCE_KEY, IS_BALANCE, Statement
from sidecar.store import now_us

_EVER = 2**62
_MOST_REMEMBERED = 10_000

_WORKER = {"worker": "text"}
_ORDER = "t.organization_id, t.model, t.kind, t.period, t.worker"
_LOCK = Statement(
    f"SELECT t.* FROM {{rows}} CROSS JOIN leases t WHERE t.worker = v.worker AND {IS_BALANCE} "
    f"ORDER BY {_ORDER} {{lock}}",
    {**_WORKER, **BALANCE_KEY},
)
# Levels are added: of a transaction that nobody has heard the end of, a lease may have come after the look for it.
_CHANGE = Statement(
    "INSERT INTO leases ({names}) SELECT {names} FROM {rows} WHERE true ORDER BY "
    + ", ".join(BALANCE_KEY)
    + f" ON CONFLICT (worker, {', '.join(BALANCE_KEY)}) DO UPDATE SET level = leases.level + excluded.level, "
    "expires_at = excluded.expires_at, rest = excluded.rest, rest_at = excluded.rest_at",
    {**_WORKER, **BALANCE_KEY, "level": "bigint", "expires_at": "bigint", "rest": "bigint", "rest_at": "bigint"},
)
_LOCK_ENDING = Statement(
    f"SELECT t.* FROM {{rows}} CROSS JOIN leases t WHERE t.worker = v.worker AND NOT (t.expires_at > v.now AND "
    f"t.expires_at <= v.latest) ORDER BY {_ORDER} {{lock}}",
    {**_WORKER, "now": "bigint", "latest": "bigint"},
)
_REMOVE = Statement(
    "DELETE FROM leases WHERE (worker, organization_id, model, kind, period) IN (SELECT {names} FROM {rows})",
    {**_WORKER, **BALANCE_KEY},
)
_ANY_ENDING = text(
    "SELECT count(*) FROM leases WHERE worker = :worker AND NOT (expires_at > :now AND expires_at <= :latest)"
)


class Lessee:
    """Takes leases of ``seconds`` for ``worker``, the life of this process.

    A balance is leased that is used for the second time within ``seconds``.
    """

    def __init__(self, worker: str, seconds: int) -> None:
        self.worker = worker
        self.seconds = seconds
        self._used: dict[Key, int] = {}

    def lock(
        self,
        connection: Connection,
        keys: Iterable[Key],
        limits: Mapping[Key, Limit],
        flows: Mapping[Key, Flow],
        now: int,
    ) -> Leased:
        """The leases on the balances ``keys``, locked. ``flows`` says what is to happen to each."""
        rows = _LOCK.run(connection, [{"worker": self.worker, **key._asdict()} for key in sorted(keys)])
        found = {_key(row): Lease(row.level, row.expires_at, Level(row.rest, row.rest_at)) for row in rows}
        return Leased(self, found, limits, flows, now)

    def size(self, limit: Limit, left: int, wanted: int, now: int) -> int:
        """How much to take of a balance that has been locked."""
        used = self._used.get(limit.key)
        if len(self._used) >= _MOST_REMEMBERED:
            self._used.clear()
        self._used[limit.key] = now
        if used is None or not 0 <= now - used <= self.seconds * SECOND:
            return 0
        return slice_of(limit, left, wanted, self.seconds)

    def has_ending(self, connection: Connection) -> bool:
        """Whether a lease has run out and lies there."""
        now = now_us(connection)
        values = {"worker": self.worker, "now": now, "latest": now + self.seconds * SECOND}
        return bool(connection.execute(_ANY_ENDING, values).scalar_one())


class Leased:
    """The leases of one transaction. It can do without the balances that are ``sufficient``."""

    def __init__(
        self,
        lessee: Lessee,
        found: Mapping[Key, Lease],
        limits: Mapping[Key, Limit],
        flows: Mapping[Key, Flow],
        now: int,
    ) -> None:
        self._lessee = lessee
        self._found = found
        self._limits = limits
        self._flows = flows
        self._rows: Mapping[Key, Level] = {}
        self.sufficient = {
            key
            for key, lease in found.items()
            if key in limits and suffices(lease, limits[key], flows[key], now, lessee.seconds)
        }

    def balances(self, rows: Mapping[Key, Level], now: int) -> Balances:
        """What is decided on: the leases that suffice, and the balances in ``rows`` with what was left in a lease."""
        self._rows = rows
        levels = dict(rows)
        for key, lease in self._found.items():
            if key in self.sufficient:
                levels[key] = seen_as(lease, self._limits[key], now)
            elif key in rows:
                levels[key] = moved(key, rows[key], lease.level)
        return Balances(levels, now, {key: self._found[key].rest for key in self.sufficient})

    def write(self, connection: Connection, balances: Balances) -> dict[Key, Level]:
        """Write the leases, new ones among them. Returns the balances that have changed."""
        changes, changed = [], {}
        for key in sorted(self.sufficient):
            lease, left = self._found[key], left_in(self._limits[key], balances.level(key))
            if left != lease.level:
                changes.append(self._change(key, left - lease.level, lease.expires_at, lease.rest))
        for key, row in sorted(self._rows.items()):
            level, size, held = balances.level(key), 0, self._found.get(key)
            limit, wanted = self._limits.get(key), self._flows[key].wanted
            if limit is not None and (wanted or held is not None):
                level = _filled(limit, level, balances.now)
                size = self._lessee.size(limit, left_in(limit, level), wanted, balances.now)
            rest = moved(key, level, -size)
            if size or held is not None:
                expires_at = balances.now + (self._lessee.seconds * SECOND if size else 0)
                changes.append(self._change(key, size - (held.level if held else 0), expires_at, rest))
            if rest != row:
                changed[key] = rest
        _CHANGE.run(connection, changes)
        return changed

    def _change(self, key: Key, amount: int, expires_at: int, rest: Level) -> dict[str, object]:
        lease = {"level": amount, "expires_at": expires_at, "rest": rest.level, "rest_at": rest.updated_at}
        return {"worker": self._lessee.worker, **key._asdict(), **lease}


class ReturnLeases:
    """The operation that gives back what is left in the leases of a :class:`Lessee` that have run out."""

    def __init__(self, clock: Callable[[Connection], int] = now_us) -> None:
        """``clock`` is the store's, in microseconds since the epoch."""
        self._clock = clock

    def perform(self, connection: Connection, items: Sequence[Lessee]) -> Sequence[None]:
        """Give back those of all ``items``."""
        now = self._clock(connection)
        rows = [{"worker": of.worker, "now": now, "latest": now + of.seconds * SECOND} for of in items]
        _return(connection, _LOCK_ENDING.run(connection, rows))
        return [None] * len(items)


def return_all(connection: Connection, workers: Iterable[str]) -> None:
    """Give back all that ``workers`` hold."""
    rows = [{"worker": worker, "now": _EVER, "latest": 0} for worker in sorted(set(workers))]
    _return(connection, _LOCK_ENDING.run(connection, rows))


def _return(connection: Connection, leases: Sequence[Row[Any]]) -> None:
    balances = lock_balances(connection, {_key(lease) for lease in leases})
    for lease in leases:
        key = _key(lease)
        # A balance that has been deleted needs nothing back.
        if key in balances:
            balances[key] = moved(key, balances[key], lease.level)
    write_balances(connection, balances)
    _REMOVE.run(connection, [{"worker": lease.worker, **_key(lease)._asdict()} for lease in leases])


def _filled(limit: Limit, level: Level, now: int) -> Level:
    if limit.key.kind not in RATES:
        return level
    bucket = limit.bucket(level).at(now)
    return Level(bucket.level, bucket.updated_at)


def _key(row: Row[Any]) -> Key:
    return Key(row.organization_id, row.model, row.kind, row.period)
