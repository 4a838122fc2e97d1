"""Version 0003: keys that belong to a project and an environment of their organization."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("credentials", sa.Column("project", sa.Text()))
    op.add_column("credentials", sa.Column("environment", sa.Text()))
