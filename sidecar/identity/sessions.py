"""Sessions of a console's users: made at a login, shown by a cookie, ended by a logout or by themselves."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, or_, select

from sidecar.identity.identity import INFERENCE
from sidecar.identity.organizations import find
from sidecar.identity.records import Record, Terms, UnknownCredential, issue, revoke
from sidecar.identity.records import find as find_credential
from sidecar.identity.secret import Kind, Secret
from sidecar.store import now_us
from sidecar.store.tables import credentials
from sidecar.surfaces.endpoints import SESSION_COOKIE

SECONDS = 12 * 3600.0
"""How long a session lasts that was made without saying so."""

FEWEST_SECONDS, MOST_SECONDS = 60, 30 * 86_400
"""How long one may last at all: a cookie on somebody's machine is no key that a program keeps."""


def begin(
    connection: Connection,
    organization: str,
    user: str,
    *,
    seconds: float = SECONDS,
    scopes: frozenset[str] = INFERENCE,
) -> tuple[Secret, Record]:
    """Make a session for ``user``, whom the caller has authenticated; its value is known only to whoever calls this.

    Raises:
        OrganizationError: there is no organization of this id or name.
        ValueError: ``seconds`` are fewer or more than a session may last.
    """
    if not FEWEST_SECONDS <= seconds <= MOST_SECONDS:
        raise ValueError("A session lasts from a minute to 30 days.")
    id_ = find(connection, organization).id
    return issue(connection, Terms(Kind.SESSION, id_, scopes, user=user, seconds=seconds))


def listed(
    connection: Connection, organization: str | None = None, after: str = "", most: int | None = None
) -> Sequence[Record]:
    """The sessions that have not ended, of one organization (its id or name) or of all, the oldest first.

    ``after`` is the id of the last one that is known already, or empty; ``most`` is how many are wanted, if not all.

    Raises:
        OrganizationError: there is no such organization.
    """
    mine, now = credentials.c, now_us(connection)
    lasting = or_(mine.expires_at.is_(None), mine.expires_at > now)
    wanted = select(credentials).where(mine.kind == Kind.SESSION.value, mine.revoked_at.is_(None), lasting)
    wanted = wanted.where(mine.id > after)
    if organization is not None:
        wanted = wanted.where(mine.organization_id == find(connection, organization).id)
    return [Record.of(row) for row in connection.execute(wanted.order_by(mine.id).limit(most))]


def end(connection: Connection, id_: str) -> Record:
    """End the session of this id (``ses_…``); one that has ended stays so.

    Raises:
        UnknownCredential: there is no such session.
    """
    if find_credential(connection, id_).kind is not Kind.SESSION:
        raise UnknownCredential(f"{id_} is no session.")
    return revoke(connection, id_)


def cookie(secret: Secret, seconds: float) -> str:
    """The value of ``Set-Cookie`` that gives a browser the session.

    The name's prefix ``__Host-`` makes browsers take it over https alone, from this host alone and for all its paths.
    ``Lax`` because a person may follow a link to the console; what other sites make a browser send is refused anyway.
    """
    return f"{SESSION_COOKIE}={secret.text}; Path=/; Max-Age={round(seconds)}; Secure; HttpOnly; SameSite=Lax"


def no_cookie() -> str:
    """The value of ``Set-Cookie`` that takes it away again."""
    return f"{SESSION_COOKIE}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"
