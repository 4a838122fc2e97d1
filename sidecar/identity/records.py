"""Credentials in the store: issued, looked up by their digest, revoked, replaced, listed. Times are microseconds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Row, insert, or_, select, update

from sidecar.identity.identity import INFERENCE
from sidecar.identity.secret import Kind, Secret, mint
from sidecar.responses.ids import ulid
from sidecar.store import now_us
from sidecar.store.tables import credentials, organizations

MICROSECONDS = 1_000_000

_PLACE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class UnknownCredential(Exception):
    """There is no credential of this id that could be changed; the message is for a person."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a credential is for: whose it is, what it allows, and for how many seconds (``None``: until revoked).

    One of a project names that and its environment, and no other does.
    """

    kind: Kind
    organization: str
    scopes: frozenset[str]
    name: str = ""
    user: str | None = None
    seconds: float | None = None
    project: str | None = None
    environment: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A credential as it is listed; never its secret."""

    id: str
    organization: str
    kind: Kind
    name: str
    hint: str
    scopes: frozenset[str]
    user: str | None
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None
    replaced_by: str | None = None
    project: str | None = None
    environment: str | None = None

    @classmethod
    def of(cls, row: Row[tuple[object, ...]]) -> Record:
        """The record in a row of the table."""
        found = row._mapping
        return cls(
            id=found["id"],
            organization=found["organization_id"],
            kind=Kind(found["kind"]),
            name=found["name"],
            hint=found["hint"],
            scopes=frozenset(found["scopes"].split()),
            user=found["user"],
            created_at=found["created_at"],
            expires_at=found["expires_at"],
            revoked_at=found["revoked_at"],
            last_used_at=found["last_used_at"],
            replaced_by=found["replaced_by"],
            project=found["project"],
            environment=found["environment"],
        )

    def ended(self, now: int) -> bool:
        """Whether it no longer counts at ``now``."""
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= now)


def is_label(text: str, most: int) -> bool:
    """Whether ``text`` can be shown in a list and sent in a header: printable, 1 to ``most`` characters."""
    return 0 < len(text) <= most and text.isprintable()


def check_places(*places: str | None) -> None:
    """Raise :class:`ValueError` unless each of them, a project or an environment, can be a name; ``None`` is none."""
    if any(place is not None and not _PLACE.fullmatch(place) for place in places):
        raise ValueError("A project and an environment have 1 to 64 letters, digits and the characters . _ -")


def has_keys(connection: Connection, organization: str, project: str, environment: str | None) -> bool:
    """Whether there is, or was, a key of a project of an organization, and of the environment where one is named."""
    rows = credentials.c
    wanted = select(rows.id).where(rows.organization_id == organization, rows.project == project).limit(1)
    if environment is not None:
        wanted = wanted.where(rows.environment == environment)
    return connection.execute(wanted).first() is not None


def issue(connection: Connection, terms: Terms) -> tuple[Secret, Record]:
    """Make a credential; the secret is known only to whoever gets it from here.

    Raises:
        ValueError: the name or the user is too long, or not printable; it would never count; it is one of a project,
            and names a user or allows what no such key is asked for.
        sqlalchemy.exc.IntegrityError: there is no such organization.
    """
    if terms.name and not is_label(terms.name, 256):
        raise ValueError("The name of a credential has at most 256 printable characters.")
    if terms.user is not None and not is_label(terms.user, 256):
        raise ValueError("A user has 1 to 256 printable characters.")
    if terms.seconds is not None and terms.seconds <= 0:
        raise ValueError("A credential has to count for some time.")
    if terms.kind is Kind.PROJECT and terms.user is not None:
        raise ValueError("A key belongs to a project or to a user, not to both.")
    if terms.kind is Kind.PROJECT and (useless := sorted(terms.scopes - INFERENCE)):
        raise ValueError(
            f"A project's key cannot have the scope {useless[0]}; it can have {' and '.join(sorted(INFERENCE))}."
        )
    places = (terms.project, terms.environment)
    if any((place is not None) != (terms.kind is Kind.PROJECT) for place in places):
        raise ValueError("A key of a project needs both a project and an environment; other credentials have neither.")
    check_places(*places)
    secret, now = mint(terms.kind), now_us(connection)
    values = {
        "id": new_id(terms.kind.id_prefix, now),
        "organization_id": terms.organization,
        "kind": terms.kind.value,
        "name": terms.name,
        "digest": secret.digest,
        "hint": secret.hint,
        "scopes": " ".join(sorted(terms.scopes)),
        "user": terms.user,
        "project": terms.project,
        "environment": terms.environment,
        "created_at": now,
        "expires_at": None if terms.seconds is None else now + round(terms.seconds * MICROSECONDS),
    }
    connection.execute(insert(credentials).values(values))
    return secret, find(connection, str(values["id"]))


def find(connection: Connection, id_: str) -> Record:
    """The credential of this id.

    Raises:
        UnknownCredential: there is none.
    """
    row = connection.execute(select(credentials).where(credentials.c.id == id_)).one_or_none()
    if row is None and Secret(id_).is_of(*Kind):
        raise UnknownCredential("This is a secret; name the credential by its id.")
    if row is None:
        raise UnknownCredential(f"There is no credential {id_}.")
    return Record.of(row)


def revoke(connection: Connection, id_: str) -> Record:
    """End a credential now; one that was revoked before stays as it is.

    Raises:
        UnknownCredential: there is none of this id.
    """
    mine = (credentials.c.id == id_) & credentials.c.revoked_at.is_(None)
    connection.execute(update(credentials).where(mine).values(revoked_at=now_us(connection)))
    return find(connection, id_)


def replace(connection: Connection, id_: str, grace: float) -> tuple[Secret, Record]:
    """A new credential on the terms of an old one, which counts for ``grace`` more seconds and not longer than before.

    The new one expires as long after its making as the old one did after its own.

    Raises:
        UnknownCredential: there is none of this id, or it has ended or been replaced.
    """
    old, now = find(connection, id_), now_us(connection)
    if old.ended(now):
        raise UnknownCredential(f"{id_} has ended; make a new key instead.")
    if old.replaced_by is not None:
        raise UnknownCredential(f"{id_} has been replaced by {old.replaced_by}.")
    seconds = None if old.expires_at is None else (old.expires_at - old.created_at) / MICROSECONDS
    terms = Terms(old.kind, old.organization, old.scopes, old.name, old.user, seconds, old.project, old.environment)
    made = issue(connection, terms)
    end = now + round(grace * MICROSECONDS)
    mine = credentials.c.id == id_
    connection.execute(update(credentials).where(mine).values(replaced_by=made[1].id))
    later = mine & or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > end)
    connection.execute(update(credentials).where(later).values(expires_at=end))
    return made


def listed(connection: Connection, kinds: Sequence[Kind], organization: str | None = None) -> Iterator[Record]:
    """The credentials of these kinds, of one organization or of all, the oldest first."""
    wanted = select(credentials).where(credentials.c.kind.in_([kind.value for kind in kinds]))
    if organization is not None:
        wanted = wanted.where(credentials.c.organization_id == organization)
    for row in connection.execute(wanted.order_by(credentials.c.created_at, credentials.c.id)):
        yield Record.of(row)


def by_digests(connection: Connection, digests: Sequence[bytes]) -> Sequence[tuple[bytes, Record, bool]]:
    """Those of ``digests`` that are known: the digest, the record, and whether its organization is disabled."""
    joined = credentials.join(organizations)
    wanted = select(credentials, organizations.c.disabled_at).select_from(joined)
    rows = connection.execute(wanted.where(credentials.c.digest.in_(digests)))
    return [(bytes(row.digest), Record.of(row), row.disabled_at is not None) for row in rows]


def new_id(prefix: str, now: int) -> str:
    """An id that sorts by the time it was made; ``now`` is in microseconds."""
    return prefix + ulid(now // 1000, os.urandom(10))
