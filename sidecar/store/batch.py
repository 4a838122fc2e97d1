"""Many pieces of work in one transaction: tried again where another stood in the way, apart where one is faulty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from sidecar.store.errors import is_unavailable, may_be_repeated, unavailable

ItemT_contra = TypeVar("ItemT_contra", contravariant=True)
ResultT_co = TypeVar("ResultT_co", covariant=True)

_MOST_ATTEMPTS = 4


class Operation(Protocol[ItemT_contra, ResultT_co]):
    """A kind of work. There is one object for each kind."""

    def perform(self, connection: Connection, items: Sequence[ItemT_contra]) -> Sequence[ResultT_co | Exception]:
        """Do all of ``items`` in the transaction that is open on ``connection``; a result for each, in their order.

        An exception that is *returned* goes to its item's caller. One that is *raised* rolls everything back, after
        which each item is performed alone. It may run several times for one item, and what an earlier run did may have
        been committed: it changes nothing but the database, and there the second time is without effect.
        """
        ...


Group = tuple[Operation[Any, Any], Sequence[Any]]
"""An operation and those of its items that are performed together."""

_Perform = Callable[[Connection, Operation[Any, Any], Sequence[Any]], Sequence[Any]]


def commit(engine: Engine, groups: Sequence[Group]) -> list[Sequence[Any]]:
    """Perform all groups in one transaction; for each its items' results, with exceptions where items failed.

    Raises:
        StoreUnavailable: the store failed. Whether all or nothing was committed is not known.
    """
    perform: _Perform = _together
    for attempt in range(1, _MOST_ATTEMPTS + 1):
        committing = False
        with _connection(engine) as connection:
            try:
                results = [perform(connection, operation, items) for operation, items in groups]
                committing = True
                connection.commit()
                return results
            except Exception as error:
                if not is_unavailable(error):
                    if perform is _apart:
                        raise
                    perform = _apart
                elif attempt == _MOST_ATTEMPTS or not may_be_repeated(error, committing):
                    raise unavailable(error) from error
    raise AssertionError("the last attempt returns or raises")


@contextmanager
def _connection(engine: Engine) -> Iterator[Connection]:
    """A connection; what was not committed on it is rolled back."""
    try:
        connection = engine.connect()
    except DBAPIError as error:
        raise unavailable(error) from error
    with connection:
        yield connection


def _together(connection: Connection, operation: Operation[Any, Any], items: Sequence[Any]) -> Sequence[Any]:
    results = operation.perform(connection, items)
    if len(results) != len(items):
        raise ValueError(f"{operation} has {len(results)} results for {len(items)} items")
    return results


def _apart(connection: Connection, operation: Operation[Any, Any], items: Sequence[Any]) -> Sequence[Any]:
    return [_alone(connection, operation, item) for item in items]


def _alone(connection: Connection, operation: Operation[Any, Any], item: Any) -> Any:
    try:
        # Of an item that fails nothing remains, and the transaction goes on.
        with connection.begin_nested():
            return _together(connection, operation, [item])[0]
    except Exception as error:
        if is_unavailable(error):
            raise
        return error
