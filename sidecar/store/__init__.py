"""Tables and transactions on SQLite and PostgreSQL. :mod:`sidecar.store.migrate` stands apart: it imports Alembic."""

from __future__ import annotations

from sidecar.store.batch import Operation
from sidecar.store.chores import repeat_forever
from sidecar.store.engine import Access, connect
from sidecar.store.errors import SchemaError, StoreUnavailable
from sidecar.store.store import Store, Told
from sidecar.store.transaction import now_us, settled_below

__all__ = [
    "Access",
    "Operation",
    "SchemaError",
    "Store",
    "StoreUnavailable",
    "Told",
    "connect",
    "now_us",
    "repeat_forever",
    "settled_below",
]
