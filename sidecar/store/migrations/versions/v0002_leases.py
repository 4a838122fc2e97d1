"""Version 0002: slices of balances that workers hold."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "leases",
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("level", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("rest", sa.BigInteger(), nullable=False),
        sa.Column("rest_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("worker", "organization_id", "model", "kind", "period", name="pk_leases"),
    )
