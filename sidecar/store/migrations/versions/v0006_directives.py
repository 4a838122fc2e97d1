"""Version 0006: directives of teams, their projects and environments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "directives",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("max_output_tokens", sa.BigInteger()),
        sa.Column("max_input_tokens", sa.BigInteger()),
        sa.Column("no_training", sa.Boolean()),
        sa.Column("excluded_vendors", sa.Text()),
        sa.Column("user_requests_per_minute", sa.BigInteger()),
        sa.Column("user_tokens_per_minute", sa.BigInteger()),
        sa.PrimaryKeyConstraint("organization_id", "project", "environment", name="pk_directives"),
    )
