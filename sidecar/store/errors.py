"""What goes wrong with a store: whether it is the store's fault, may be tried again, or is one item's own."""

from __future__ import annotations

from typing import TypeGuard

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError

# What PostgreSQL says of a transaction that it has rolled back for another's sake (serialization_failure and
# deadlock_detected), or because it ends (admin_shutdown, crash_shutdown). https://www.postgresql.org/docs/current/errcodes-appendix.html
_CONFLICTS = {"40001", "40P01"}
_SHUTDOWNS = {"57P01", "57P02"}
# A table or column that is not there: the store has been restored or made anew, and is yet to be migrated.
_NOT_MIGRATED = {"42P01", "42703"}
# What a statement's own contents cause, and would cause on any day.
_OWN_FAULTS = (IntegrityError, DataError, ProgrammingError, NotSupportedError)


class StoreUnavailable(Exception):
    """The store does not answer, is locked, full or overloaded. Whether the work was committed is not known."""


class SchemaError(Exception):
    """The store's schema is not one that this release can work with; the message says what to do."""


class BackupError(Exception):
    """A back-up that cannot be made or restored; the message says why."""


def is_unavailable(error: BaseException) -> TypeGuard[DBAPIError]:
    """Whether the store failed, rather than what was asked of it."""
    if not isinstance(error, DBAPIError):
        return False
    lost = error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _NOT_MIGRATED
    return lost or not isinstance(error, _OWN_FAULTS)


def may_be_repeated(error: DBAPIError, committing: bool) -> bool:
    """Whether the transaction surely was not committed, and may succeed when tried again at once.

    That is so where it was rolled back for another's sake, and where the connection was lost before the commit.
    """
    state = getattr(error.orig, "sqlstate", None)
    lost = error.connection_invalidated or state in _SHUTDOWNS
    return state in _CONFLICTS or (lost and not committing)


def unavailable(error: DBAPIError) -> StoreUnavailable:
    """The driver's own words in one line, without the statement and its values."""
    return StoreUnavailable(" ".join(str(error.orig).split()))
