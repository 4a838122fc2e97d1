"""What Alembic runs: the migrations, on the connection that it is given, in the transaction that is open there."""

from __future__ import annotations

from alembic import context

from sidecar.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite can change a table only by making it anew.
    render_as_batch=True,
    # Alembic expects that SQLite's driver commits before each such statement; ours leaves transactions to us.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
