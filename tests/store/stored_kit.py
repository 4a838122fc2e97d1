"""Stored responses for the tests: records of a few words, and the store's own view of them."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

from sqlalchemy import Connection, text

from sidecar.responses.ids import ResponseIds
from sidecar.store import connect
from sidecar.stored.chain import Chain, NotStored, StillMade, read_chain
from sidecar.stored.items import input_items, to_lines
from sidecar.stored.keep import Keep, Kept
from sidecar.stored.keys import AddKey, NewKey, key_of
from sidecar.stored.master_keys import MasterKeys
from sidecar.stored.owner import Owner
from sidecar.stored.record import NONCES_BYTES, Record
from tests.store.stored_model import View

OWNER = Owner("org_a", "support", "production")
MASTERS = MasterKeys([bytes(range(32))])

_numbers = itertools.count(1)


def record(
    owner: Owner = OWNER, previous: str | None = None, *, announced: bool = False, said: str = "", answered: str = "yes"
) -> Record:
    """A response of its own id, in which the user said something and the model answered."""
    ulid = f"{next(_numbers):026d}"
    message = {"type": "message", "id": f"msg_{ulid}_0", "role": "assistant", "content": answered}
    response = {"id": f"resp_{ulid}", "previous_response_id": previous, "store": False, "output": [message]}
    items = input_items(said or f"turn {ulid}", ResponseIds(ulid))
    return Record.of(response, owner, to_lines(items), announced=announced)


def keep(connection: Connection, *records: Record, masters: MasterKeys = MASTERS) -> list[Kept]:
    """Store records in the transaction that is open, with the keys that their teams have, or get now."""
    sealed = []
    for one in records:
        organization = one.place.owner.organization
        if key_of(connection, masters, organization) is None:
            AddKey().perform(connection, [NewKey.make(masters, organization, os.urandom, 0)])
        key = key_of(connection, masters, organization)
        assert key is not None
        sealed.append(one.seal(key, os.urandom(NONCES_BYTES)))
    return list(Keep().perform(connection, sealed))


def texts(connection: Connection, owner: Owner, id_: str, masters: MasterKeys = MASTERS) -> list[str]:
    """What was said in the conversation that ends with a response, as far as its owner can read it."""
    return _texts(read_chain(connection, masters, owner, id_))


def view(connection: Connection, owner: Owner, id_: str) -> View:
    """What ``owner`` gets of the conversation that ends with a response."""
    try:
        chain = read_chain(connection, MASTERS, owner, id_)
    except (NotStored, StillMade) as error:
        return type(error)
    return _texts(chain)[::2], chain.whole


def _texts(chain: Chain) -> list[str]:
    items = [json.loads(line) for text_ in chain.items() for line in text_.split(b"\n")]
    return [one["content"] if isinstance(one["content"], str) else one["content"][0]["text"] for one in items]


def empty(connection: Connection) -> None:
    """Let nothing be stored, for nobody."""
    for table in ("stored_contents", "stored_responses", "stored_keys", "zero_retention"):
        connection.execute(text(f"DELETE FROM {table}"))


def make_older(connection: Connection, microseconds: int) -> None:
    """Let all responses be so much older."""
    older = text("UPDATE stored_responses SET expires_at = expires_at - :t WHERE expires_at > 0")
    connection.execute(older, {"t": microseconds})


def rows(url: str, sql: str, **values: Any) -> list[dict[str, Any]]:
    with connect(url) as connection:
        return [dict(row) for row in connection.execute(text(sql), values).mappings()]


def let_pass(url: str, microseconds: int) -> None:
    """The same, in a store."""
    with connect(url) as connection:
        make_older(connection, microseconds)
