"""Forgets the balances of end users who have asked for nothing lately: whose bucket is full needs none.

Clients name their end users as they like, so that there may be any number of them. Any worker does this for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, text

from sidecar.admission.balances import OF_USERS
from sidecar.admission.statements import BALANCE_KEY
from sidecar.store import now_us

MOST_AT_ONCE = 500
"""How many balances a transaction removes at most."""

# A bucket fills in a minute; one that answers have overdrawn may take longer.
_FULL_US, _ANY_US = 600_000_000, 86_400_000_000

_NAMES = ", ".join(BALANCE_KEY)
_KINDS = ", ".join(f"'{kind}'" for kind in OF_USERS)
_OLD = (
    f"SELECT {_NAMES} FROM balances WHERE kind IN ({_KINDS}) AND "
    "(updated_at < :full AND level >= 0 OR updated_at < :any) LIMIT :most"
)
_REMOVE = {
    # What a request holds is in use.
    "postgresql": text(f"DELETE FROM balances WHERE ({_NAMES}) IN ({_OLD} FOR UPDATE SKIP LOCKED)"),
    "sqlite": text(f"DELETE FROM balances WHERE ({_NAMES}) IN ({_OLD})"),
}


class ForgetEndUsers:
    """The operation of :class:`~sidecar.store.Store` that removes some; the result is whether more are left."""

    def __init__(self, clock: Callable[[Connection], int] = now_us) -> None:
        """``clock`` is the store's, in microseconds since the epoch."""
        self._clock = clock

    def perform(self, connection: Connection, items: Sequence[None]) -> Sequence[bool]:
        """Remove what is old."""
        now = self._clock(connection)
        values = {"full": now - _FULL_US, "any": now - _ANY_US, "most": MOST_AT_ONCE}
        removed = connection.execute(_REMOVE[connection.dialect.name], values).rowcount
        return [removed == MOST_AT_ONCE for _ in items]
