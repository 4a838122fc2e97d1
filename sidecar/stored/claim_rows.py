"""Idempotency keys in the store: claimed, let go of, and answered.

A worker is alive as long as the store knows its life (the table ``workers``), which also decides on what it has
reserved: once it is forgotten there, all that it had reserved has been settled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select, text, update

from sidecar.store import now_us
from sidecar.store.tables import idempotency_answers, idempotency_keys, stored_keys, workers
from sidecar.stored.claims import Claim, Held, Key, Refused
from sidecar.stored.keep import LONGEST
from sidecar.stored.locks import share
from sidecar.stored.owner import Owner
from sidecar.stored.record import DAY
from sidecar.stored.zero_retention import forbidden

REMEMBERED = DAY
"""For how long a key is remembered, in microseconds, once it has been answered or let go of."""

_LIVES = text(
    "INSERT INTO workers (id, node, seen_at, beats) VALUES (:id, :node, :seen_at, 0) ON CONFLICT (id) DO NOTHING"
)
_ADD = text(
    "INSERT INTO idempotency_keys (id, organization_id, project, environment, request, attempt, worker, earlier,"
    " expires_at, withheld, bytes) VALUES (:id, :organization_id, :project, :environment, :request, :attempt, :worker,"
    " '', :expires_at, false, 0) ON CONFLICT (id) DO NOTHING"
)


class TakeKeys:
    """The operation of :class:`~sidecar.store.Store` that claims keys, for the process ``worker`` of ``node``."""

    def __init__(self, worker: str, node: str) -> None:
        self._worker = worker
        self._node = node

    def perform(self, connection: Connection, items: Sequence[Claim]) -> Sequence[Held | Refused]:
        """Give each key to the first that wants it, unless somebody has it."""
        share(connection, (item.owner.organization for item in items))
        now = now_us(connection)
        # The store may not have heard of this worker yet, or have given it up.
        connection.execute(_LIVES, {"id": self._worker, "node": self._node, "seen_at": now})
        there = _data_keys(connection, (item.key_id for item in items))
        claims = sorted((item for item in items if item.key_id in there), key=lambda item: item.id)
        if claims:
            connection.execute(_ADD, [self._row(claim, now) for claim in claims])
        keys = _lock(connection, (claim.id for claim in claims), now)
        alive = _alive(connection, (key.worker for key in keys.values())) | {self._worker}
        outcomes, taken = dict[str, Held | Refused](), dict[str, Key]()
        for claim in claims:
            key = keys[claim.id]
            outcomes[claim.attempt] = outcome = key.judge(claim, alive)
            if isinstance(outcome, Held) and not key.is_of(claim.attempt):
                keys[claim.id] = taken[claim.id] = key.taken_by(claim, outcome, self._worker)
        for id_, key in taken.items():
            connection.execute(delete(idempotency_answers).where(idempotency_answers.c.id == id_))
            _write(connection, id_, key, expires_at=now + LONGEST, answered_at=None, withheld=False, bytes=0)
        return [outcomes.get(item.attempt, Refused.KEY_GONE) for item in items]

    def _row(self, claim: Claim, now: int) -> dict[str, Any]:
        return {
            "id": claim.id,
            "organization_id": claim.owner.organization,
            "project": claim.owner.project,
            "environment": claim.owner.environment,
            "request": claim.request,
            "attempt": claim.attempt,
            "worker": self._worker,
            "expires_at": now + LONGEST,
        }


@dataclass(frozen=True, slots=True)
class LetGo:
    """The request ``attempt`` will not be answered in a way that is kept; its cost may be ``given_back``."""

    id: str
    attempt: str
    given_back: bool


class LetKeysGo:
    """The operation of :class:`~sidecar.store.Store` that lets go of keys, so that the next try is as the first."""

    def perform(self, connection: Connection, items: Sequence[LetGo]) -> Sequence[None]:
        """Let go of those that are still held. Of a key that says nothing of earlier attempts nothing is left."""
        now = now_us(connection)
        keys = _lock(connection, (item.id for item in items), now)
        for item in items:
            key = keys.get(item.id)
            if key is None or not key.is_of(item.attempt):
                continue
            key = key.let_go(given_back=item.given_back)
            if key.earlier:
                _write(connection, item.id, key, expires_at=now + REMEMBERED)
            else:
                connection.execute(delete(idempotency_keys).where(idempotency_keys.c.id == item.id))
        return [None for _ in items]


@dataclass(frozen=True, slots=True)
class SealedAnswer:
    """The answer of the request ``attempt``, sealed with the data key ``key_id``; ``None`` where it is not kept."""

    id: str
    owner: Owner
    attempt: str
    key_id: str
    answer: bytes | None


class KeepAnswers:
    """The operation of :class:`~sidecar.store.Store` that keeps what keys stand for from now on.

    That a key has been answered is remembered even where the answer may not be kept.
    """

    def perform(self, connection: Connection, items: Sequence[SealedAnswer]) -> Sequence[None]:
        """Keep those whose key is still held."""
        owners = {item.owner for item in items}
        share(connection, (owner.organization for owner in owners))
        refused = forbidden(connection, owners)
        there = _data_keys(connection, (item.key_id for item in items))
        now = now_us(connection)
        keys = _lock(connection, (item.id for item in items), now)
        withheld = _withheld(connection, keys)
        for item in items:
            key = keys.get(item.id)
            if key is None or not key.is_of(item.attempt):
                continue
            answer = None if item.owner in refused or item.key_id not in there or item.id in withheld else item.answer
            if answer is not None:
                values = {"id": item.id, "key_id": item.key_id, "answer": answer}
                connection.execute(insert(idempotency_answers).values(**values))
            size = 0 if answer is None else len(answer)
            _write(connection, item.id, key, expires_at=now + REMEMBERED, answered_at=now, bytes=size)
            keys[item.id] = replace(key, answered=True)
        return [None for _ in items]


def is_running(connection: Connection, claim: Claim) -> bool:
    """Whether another request that holds the key of ``claim`` is still at it."""
    now = now_us(connection)
    row = connection.execute(select(idempotency_keys).where(idempotency_keys.c.id == claim.id)).one_or_none()
    if row is None:
        return False
    key = _key_of(row, now)
    return key.judge(claim, _alive(connection, [key.worker])) is Refused.RUNNING


def sealed_answer(connection: Connection, id_: str) -> tuple[str, bytes] | None:
    """The data key and the sealed answer that a key stands for; ``None`` where that is not kept."""
    row = connection.execute(select(idempotency_answers).where(idempotency_answers.c.id == id_)).one_or_none()
    return None if row is None else (row.key_id, row.answer)


def _data_keys(connection: Connection, ids: Iterable[str]) -> set[str]:
    return set(connection.scalars(select(stored_keys.c.id).where(stored_keys.c.id.in_(set(ids)))))


def _alive(connection: Connection, lives: Iterable[str]) -> set[str]:
    return set(connection.scalars(select(workers.c.id).where(workers.c.id.in_(set(lives)))))


def _lock(connection: Connection, ids: Iterable[str], now: int) -> dict[str, Key]:
    """The keys that are there, by id; nobody else changes them meanwhile."""
    wanted = select(idempotency_keys).where(idempotency_keys.c.id.in_(set(ids)))
    rows = connection.execute(wanted.order_by(idempotency_keys.c.id).with_for_update())
    return {row.id: _key_of(row, now) for row in rows}


def _withheld(connection: Connection, ids: Collection[str]) -> set[str]:
    rows = idempotency_keys.c
    return set(connection.scalars(select(rows.id).where(rows.id.in_(ids), rows.withheld)))


def _key_of(row: Any, now: int) -> Key:
    answered, ended = row.answered_at is not None, row.expires_at <= now
    return Key(row.request, row.attempt, row.worker, tuple(row.earlier.split()), answered=answered, ended=ended)


def _write(connection: Connection, id_: str, key: Key, **values: Any) -> None:
    of_key = {"request": key.request, "attempt": key.attempt, "worker": key.worker, "earlier": " ".join(key.earlier)}
    connection.execute(update(idempotency_keys).where(idempotency_keys.c.id == id_).values(**of_key, **values))
