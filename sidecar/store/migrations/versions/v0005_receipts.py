"""Version 0005: what receipts tell beyond the ledger, and the logs of projects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns, and the indexes by which a log is read."""
    for name in ("project", "environment", "endpoint", "told_model", "session", "client_request_id", "refusal"):
        op.add_column("reservations", sa.Column(name, sa.Text()))
    for name in ("session", "attempts"):
        op.add_column("usage_records", sa.Column(name, sa.Text()))
    logged = sa.text("project IS NOT NULL")
    for name, columns in (
        ("ix_reservations_log", ["organization_id", "project", "environment", "id"]),
        ("ix_reservations_request_id", ["request_id"]),
    ):
        op.create_index(name, "reservations", columns, sqlite_where=logged, postgresql_where=logged)
