"""Who may write a team's responses at a time: many that store, or one that turns storing off or throws its key away.

So a response is either stored before, and goes with the others, or finds that it may not be. SQLite has one writer.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

# Of this project alone, on a server that others use too: the first number of a lock that has two.
_CLASS = 1_677_213_849
_SHARED = text(f"SELECT pg_advisory_xact_lock_shared({_CLASS}, hashtext(:organization))")
_ALONE = text(f"SELECT pg_advisory_xact_lock({_CLASS}, hashtext(:organization))")


def share(connection: Connection, organizations: Iterable[str]) -> None:
    """Store for these teams, to the end of the transaction."""
    if connection.dialect.name == "postgresql":
        for organization in sorted(set(organizations)):
            connection.execute(_SHARED, {"organization": organization})


def alone(connection: Connection, organization: str) -> None:
    """Keep all others from storing for this team, to the end of the transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(_ALONE, {"organization": organization})
