"""A chain of responses, each of which continued the one before: read with one query, however long it is.

A response has its own items and the id of the one that it continued. The query follows these ids from the last response
to the first, at most as far as a conversation may be long.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection, Row, text

from sidecar.store import now_us
from sidecar.stored.master_keys import MasterKeys
from sidecar.stored.owner import Owner
from sidecar.stored.seals import DataKey, Place

MOST_BYTES = 32 * 1024 * 1024
"""A conversation with more bytes of items than this is not continued."""
MOST_RESPONSES = 16_384

_READ = text(
    """
WITH RECURSIVE chain (id, previous_id, depth, bytes) AS (
    SELECT id, previous_id, 0, item_bytes FROM stored_responses WHERE id = :id
    UNION ALL
    SELECT t.id, t.previous_id, c.depth + 1, c.bytes + t.item_bytes
    FROM chain c JOIN stored_responses t ON t.id = c.previous_id
    WHERE c.depth + 1 < :most_responses AND c.bytes <= :most_bytes
)
SELECT c.depth, c.bytes, r.id, r.organization_id, r.project, r.environment, r.previous_id, r.stored_at, r.expires_at,
    s.key_id, s.input, s.output, s.response, k.wrapped, k.master
FROM chain c
JOIN stored_responses r ON r.id = c.id
LEFT JOIN stored_contents s ON s.response_id = c.id
LEFT JOIN stored_keys k ON k.id = s.key_id
"""
)


class NotStored(Exception):
    """There is no such response for this owner, or one of its chain is gone."""


class StillMade(Exception):
    """The response is being made; it may be stored soon."""


class TooLong(Exception):
    """The conversation is larger than one that can be continued."""


class Chain:
    """The responses from the last one back to the first, or to the one before which something is missing."""

    def __init__(self, rows: Sequence[Row[Any]], masters: MasterKeys) -> None:
        self._rows = rows
        self._masters = masters
        self._keys: dict[str, DataKey] = {}

    @property
    def whole(self) -> bool:
        """Whether it goes back to the begin of the conversation."""
        return self._rows[-1].previous_id is None

    @property
    def too_long(self) -> bool:
        """Whether it was not followed to its begin."""
        first = self._rows[-1]
        return not self.whole and (first.bytes > MOST_BYTES or first.depth + 1 >= MOST_RESPONSES)

    def items(self) -> list[bytes]:
        """The stored lists of items, oldest first: each response's input and output.

        Raises:
            SealBroken, KeyUnknown: something cannot be read.
        """
        found: list[bytes] = []
        for row in reversed(self._rows):
            key, place = self._key_of(row), _place_of(row)
            found += [key.open(row.input, place, "input"), key.open(row.output, place, "output")]
        return found

    def response(self) -> tuple[bytes, bytes]:
        """The last response's object without its output, and the output's items.

        Raises:
            SealBroken, KeyUnknown: something cannot be read.
        """
        row = self._rows[0]
        key, place = self._key_of(row), _place_of(row)
        return key.open(row.response, place, "response"), key.open(row.output, place, "output")

    def _key_of(self, row: Row[Any]) -> DataKey:
        key = self._keys.get(row.key_id)
        if key is None:
            raw = self._masters.unwrap(row.wrapped, row.master, row.key_id, row.organization_id)
            self._keys[row.key_id] = key = DataKey(row.key_id, raw)
        return key


def read_chain(
    connection: Connection, masters: MasterKeys, owner: Owner, id_: str, most_responses: int | None = None
) -> Chain:
    """The chain that ends with the response ``id_``, as far as ``owner`` may see it; at most so many responses.

    Raises:
        NotStored: there is no such response.
        StillMade: it is being made.
    """
    asked = {"id": id_, "most_responses": most_responses or MOST_RESPONSES, "most_bytes": MOST_BYTES}
    rows = sorted(connection.execute(_READ, asked), key=lambda row: row.depth)
    now = now_us(connection)
    if rows and _is_visible(rows[0], owner, now) and rows[0].stored_at is None:
        raise StillMade
    if not rows or not _is_stored(rows[0], owner, now):
        raise NotStored
    return Chain(list(takewhile(lambda row: _is_stored(row, owner, now), rows)), masters)


def _is_visible(row: Row[Any], owner: Owner, now: int) -> bool:
    return bool(Owner(row.organization_id, row.project, row.environment) == owner and row.expires_at > now)


def _is_stored(row: Row[Any], owner: Owner, now: int) -> bool:
    # Of a team whose key was thrown away, a response may still be there for a moment.
    return _is_visible(row, owner, now) and row.stored_at is not None and row.wrapped is not None


def _place_of(row: Row[Any]) -> Place:
    return Place(row.id, Owner(row.organization_id, row.project, row.environment), row.previous_id)
