"""The tables, the same on both engines.

Identifiers are text, times are microseconds since the epoch, money is in nano-units of the currency (a billionth),
counts are whole numbers. What is created here must agree with what ``migrations`` make; a test compares the two.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

metadata = MetaData(
    # Constraints with names can be changed by later migrations, on both engines.
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

organizations = Table(
    "organizations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("prepaid", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("disabled_at", BigInteger),
)

credentials = Table(
    "credentials",
    metadata,
    Column("id", Text, primary_key=True),
    Column("organization_id", Text, ForeignKey(organizations.c.id), nullable=False, index=True),
    Column("kind", Text, nullable=False),  # key, token or session
    Column("name", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("hint", Text, nullable=False),  # the last four characters of what was issued
    Column("scopes", Text, nullable=False),  # separated by spaces
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
    Column("replaced_by", Text),
    Column("user", Text),
    Column("project", Text),  # of keys that belong to one, and then the environment too
    Column("environment", Text),
)

limits = Table(
    "limits",
    metadata,
    Column("organization_id", Text, nullable=False),  # * for all
    Column("model", Text, nullable=False),  # * for all
    Column("requests_per_minute", BigInteger),
    Column("tokens_per_minute", BigInteger),
    Column("image_bytes_per_minute", BigInteger),
    Column("concurrent_requests", BigInteger),
    Column("period", Text),  # day or month, of UTC
    Column("period_tokens", BigInteger),
    PrimaryKeyConstraint("organization_id", "model"),
)

balances = Table(
    "balances",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("kind", Text, nullable=False),  # requests, tokens, image_bytes, concurrent or quota
    Column("period", Text, nullable=False),  # of a quota, as 2026-11; otherwise empty
    Column("level", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("organization_id", "model", "kind", "period"),
)

leases = Table(
    "leases",
    metadata,
    Column("worker", Text, nullable=False),
    Column("organization_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("period", Text, nullable=False),
    Column("level", BigInteger, nullable=False),  # what the worker has taken from the balance, and may still give out
    Column("expires_at", BigInteger, nullable=False),
    Column("rest", BigInteger, nullable=False),  # the balance's level when the worker last saw it
    Column("rest_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("worker", "organization_id", "model", "kind", "period"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("organization_id", Text, ForeignKey(organizations.c.id), primary_key=True),
    Column("balance", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
)

credit_entries = Table(
    "credit_entries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("organization_id", Text, ForeignKey(organizations.c.id), nullable=False, index=True),
    Column("amount", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

reservations = Table(
    "reservations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("request_id", Text, nullable=False),
    Column("organization_id", Text, nullable=False),
    Column("credential_id", Text),
    Column("model", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("worker", Text, nullable=False),  # the life of one worker process
    Column("created_at", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),  # reserved
    Column("input_tokens", BigInteger, nullable=False),
    Column("image_bytes", BigInteger, nullable=False),
    Column("hold", BigInteger, nullable=False),
    Column("taken", Text, nullable=False),  # the balances that it took from
    Column("end_user", Text),
    Column("tags", Text),
    Column("stream", Boolean, nullable=False),
    Column("delivered_output", BigInteger, nullable=False),
    Column("delivered_reasoning", BigInteger, nullable=False),
    Column("checkpoint_at", BigInteger),
    Column("settled_at", BigInteger),
    Column("project", Text),  # in whose log of requests it stands, where it stands in one
    Column("environment", Text),
    Column("endpoint", Text),
    Column("told_model", Text),  # what answers call the model
    Column("session", Text),
    Column("client_request_id", Text),
    Column("refusal", Text),  # the code by which it was refused: it took nothing and has no record
)
# Those that are open are few, and are looked for by their worker.
_OPEN = text("settled_at IS NULL")
Index("ix_reservations_open", reservations.c.worker, sqlite_where=_OPEN, postgresql_where=_OPEN)
Index("ix_reservations_settled_at", reservations.c.settled_at)
# The logs of projects; what stands in none costs nothing more.
_LOGGED = text("project IS NOT NULL")
Index(
    "ix_reservations_log",
    *(reservations.c[name] for name in ("organization_id", "project", "environment", "id")),
    sqlite_where=_LOGGED,
    postgresql_where=_LOGGED,
)
Index("ix_reservations_request_id", reservations.c.request_id, sqlite_where=_LOGGED, postgresql_where=_LOGGED)

usage_records = Table(
    "usage_records",
    metadata,
    # SQLite counts up by itself only a column of this type.
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("request_id", Text, nullable=False),
    Column("organization_id", Text, nullable=False),
    Column("credential_id", Text),
    Column("model", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("guided_tokens", BigInteger, nullable=False),
    Column("image_bytes", BigInteger, nullable=False),
    Column("price", BigInteger, nullable=False),
    Column("price_terms", Text, nullable=False),  # the price that was applied, as JSON
    Column("outcome", Text, nullable=False),
    Column("stream", Boolean, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("first_token_ms", BigInteger),
    Column("total_ms", BigInteger, nullable=False),
    Column("end_user", Text),
    Column("tags", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("txid", BigInteger, nullable=False),  # of the transaction that wrote it
    Column("session", Text),
    Column("attempts", Text),  # the routes that were tried, as JSON
    Index("ix_usage_records_feed", "txid", "position"),
    Index("ix_usage_records_organization_id_created_at", "organization_id", "created_at"),
    # A position is never given twice, or a reader that has seen its first record would miss the second.
    sqlite_autoincrement=True,
)

workers = Table(
    "workers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("beats", BigInteger, nullable=False),
    Index("ix_workers_seen_at", "seen_at"),
)

stored_keys = Table(
    "stored_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("organization_id", Text, nullable=False, unique=True),
    Column("wrapped", LargeBinary, nullable=False),  # the data key, sealed with a master key
    Column("master", Text, nullable=False),  # which one
    Column("created_at", BigInteger, nullable=False),
)

stored_responses = Table(
    "stored_responses",
    metadata,
    Column("id", Text, primary_key=True),
    Column("organization_id", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("previous_id", Text),  # the response that it continued, which may have been deleted
    Column("created_at", BigInteger, nullable=False),
    Column("stored_at", BigInteger),  # none while it is being made
    Column("expires_at", BigInteger, nullable=False),
    Column("item_bytes", BigInteger, nullable=False),
    Index("ix_stored_responses_expires_at", "expires_at"),
    Index("ix_stored_responses_organization_id", "organization_id"),
)

# Apart, so that a response whose expiry moves is a small row. None outlives its response.
stored_contents = Table(
    "stored_contents",
    metadata,
    Column("response_id", Text, ForeignKey(stored_responses.c.id, ondelete="CASCADE"), primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("input", LargeBinary, nullable=False),
    Column("output", LargeBinary, nullable=False),
    Column("response", LargeBinary, nullable=False),
)

directives = Table(
    "directives",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("project", Text, nullable=False),  # * for all
    Column("environment", Text, nullable=False),  # * for all
    Column("max_output_tokens", BigInteger),
    Column("max_input_tokens", BigInteger),
    Column("no_training", Boolean),
    Column("excluded_vendors", Text),  # separated by spaces
    Column("user_requests_per_minute", BigInteger),
    Column("user_tokens_per_minute", BigInteger),
    PrimaryKeyConstraint("organization_id", "project", "environment"),
)

zero_retention = Table(
    "zero_retention",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("project", Text, nullable=False),  # * for all
    Column("environment", Text, nullable=False),  # * for all
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("organization_id", "project", "environment"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("id", Text, primary_key=True),  # a digest of the key and of whose it is
    Column("organization_id", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("request", Text, nullable=False),  # a digest of what was asked
    Column("attempt", Text, nullable=False),  # the id of the request that holds the key, or was the last to
    Column("worker", Text, nullable=False),  # whose life it has; empty where nobody holds the key
    Column("earlier", Text, nullable=False),  # attempts whose cost is given back; separated by spaces
    Column("answered_at", BigInteger),
    Column("expires_at", BigInteger, nullable=False),
    Column("withheld", Boolean, nullable=False),  # its answer is not to be kept: the response was deleted
    Column("bytes", BigInteger, nullable=False),  # of its answer, as it is kept
    Index("ix_idempotency_keys_attempt", "attempt"),
    Index("ix_idempotency_keys_expires_at", "expires_at"),
    Index("ix_idempotency_keys_organization_id", "organization_id"),
)

idempotency_answers = Table(
    "idempotency_answers",
    metadata,
    Column("id", Text, ForeignKey(idempotency_keys.c.id, ondelete="CASCADE"), primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("answer", LargeBinary, nullable=False),
)
