"""Version 0001: organizations, credentials, limits and the ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "balances",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("level", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organization_id", "model", "kind", "period", name="pk_balances"),
    )
    op.create_table(
        "limits",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("requests_per_minute", sa.BigInteger()),
        sa.Column("tokens_per_minute", sa.BigInteger()),
        sa.Column("image_bytes_per_minute", sa.BigInteger()),
        sa.Column("concurrent_requests", sa.BigInteger()),
        sa.Column("period", sa.Text()),
        sa.Column("period_tokens", sa.BigInteger()),
        sa.PrimaryKeyConstraint("organization_id", "model", name="pk_limits"),
    )
    op.create_table(
        "organizations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prepaid", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("disabled_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_organizations"),
        sa.UniqueConstraint("name", name="uq_organizations_name"),
    )
    op.create_table(
        "reservations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.Text()),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("image_bytes", sa.BigInteger(), nullable=False),
        sa.Column("hold", sa.BigInteger(), nullable=False),
        sa.Column("taken", sa.Text(), nullable=False),
        sa.Column("end_user", sa.Text()),
        sa.Column("tags", sa.Text()),
        sa.Column("stream", sa.Boolean(), nullable=False),
        sa.Column("delivered_output", sa.BigInteger(), nullable=False),
        sa.Column("delivered_reasoning", sa.BigInteger(), nullable=False),
        sa.Column("checkpoint_at", sa.BigInteger()),
        sa.Column("settled_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
    )
    still_open = sa.text("settled_at IS NULL")
    op.create_index(
        "ix_reservations_open", "reservations", ["worker"], sqlite_where=still_open, postgresql_where=still_open
    )
    op.create_index("ix_reservations_settled_at", "reservations", ["settled_at"])
    op.create_table(
        "usage_records",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.Text()),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("reasoning_tokens", sa.BigInteger(), nullable=False),
        sa.Column("guided_tokens", sa.BigInteger(), nullable=False),
        sa.Column("image_bytes", sa.BigInteger(), nullable=False),
        sa.Column("price", sa.BigInteger(), nullable=False),
        sa.Column("price_terms", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("stream", sa.Boolean(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("first_token_ms", sa.BigInteger()),
        sa.Column("total_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_user", sa.Text()),
        sa.Column("tags", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("txid", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_usage_records"),
        sa.UniqueConstraint("id", name="uq_usage_records_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_usage_records_feed", "usage_records", ["txid", "position"])
    op.create_index("ix_usage_records_organization_id_created_at", "usage_records", ["organization_id", "created_at"])
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("beats", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    op.create_index("ix_workers_seen_at", "workers", ["seen_at"])
    op.create_table(
        "accounts",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_accounts_organization_id"),
        sa.PrimaryKeyConstraint("organization_id", name="pk_accounts"),
    )
    op.create_table(
        "credentials",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.Column("replaced_by", sa.Text()),
        sa.Column("user", sa.Text()),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_credentials_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_credentials"),
        sa.UniqueConstraint("digest", name="uq_credentials_digest"),
    )
    op.create_index("ix_credentials_organization_id", "credentials", ["organization_id"])
    op.create_table(
        "credit_entries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_credit_entries_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_credit_entries"),
    )
    op.create_index("ix_credit_entries_organization_id", "credit_entries", ["organization_id"])
