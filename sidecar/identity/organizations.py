"""Organizations in the store, and what an operator decides about each: its limits and its credits.

Money is in nano-units of the currency. Which limits an organization inherits, :mod:`sidecar.admission.limits` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, or_, select, true, update
from sqlalchemy.exc import IntegrityError

from sidecar.admission.bill import CARRIED_FORWARD
from sidecar.admission.limits import ANY, Limits
from sidecar.identity.records import is_label, new_id
from sidecar.store import now_us
from sidecar.store.tables import accounts, credit_entries, limits, organizations

_COLUMNS = tuple(field.name for field in fields(Limits))
_NOTHING = Limits()
_TAKEN = "There is an organization of this name or id already."


class OrganizationError(Exception):
    """What cannot be done to an organization; the message is for a person."""


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization. ``balance`` and ``held`` are those of its account, in nano-units of the currency."""

    id: str
    name: str
    prepaid: bool
    created_at: int
    disabled_at: int | None
    balance: int
    held: int


def create(connection: Connection, name: str, *, prepaid: bool, id_: str | None = None) -> Organization:
    """Make an organization. ``id_`` is what an operator's own authentication calls it; by default one is made.

    Raises:
        OrganizationError: there is one of this name or id already, or they are no name or id.
    """
    if not is_label(name, 128) or name != name.strip() or name == ANY:
        raise OrganizationError("A name has 1 to 128 printable characters, with no space at its ends; * is none.")
    if id_ is not None and (not is_label(id_, 128) or " " in id_ or id_ == ANY):
        raise OrganizationError("An id has 1 to 128 printable characters without spaces; * is none.")
    now = now_us(connection)
    made = new_id("org_", now) if id_ is None else id_
    # Commands take either, so that neither may stand for another's.
    taken = or_(organizations.c.id.in_((name, made)), organizations.c.name.in_((name, made)))
    if connection.execute(select(organizations.c.id).where(taken)).first() is not None:
        raise OrganizationError(_TAKEN)
    try:
        with connection.begin_nested():
            connection.execute(insert(organizations).values(id=made, name=name, prepaid=prepaid, created_at=now))
            connection.execute(insert(accounts).values(organization_id=made, balance=0, held=0))
    except IntegrityError:
        raise OrganizationError(_TAKEN) from None
    return find(connection, made)


def find(connection: Connection, name: str) -> Organization:
    """The organization of this id or else of this name.

    Raises:
        OrganizationError: there is none.
    """
    for same in (organizations.c.id == name, organizations.c.name == name):
        for organization in _read(connection, same):
            return organization
    raise OrganizationError(f"There is no organization {name}.")


def listed(connection: Connection) -> Sequence[Organization]:
    """All organizations, the oldest first."""
    return _read(connection, true())


def page(connection: Connection, after: str, most: int) -> Sequence[Organization]:
    """``most`` of them by name, from the one that follows the name ``after``."""
    return _read(connection, organizations.c.name > after, organizations.c.name, most)


def disable(connection: Connection, organization: str) -> Organization:
    """Have no credential of an organization, of this id or name, count any more; one that was disabled stays so.

    Raises:
        OrganizationError: there is no such organization.
    """
    mine = organizations.c.id == find(connection, organization).id
    enabled = mine & organizations.c.disabled_at.is_(None)
    connection.execute(update(organizations).where(enabled).values(disabled_at=now_us(connection)))
    return find(connection, organization)


def enable(connection: Connection, organization: str) -> Organization:
    """Have the credentials of an organization, of this id or name, count again that have not ended meanwhile.

    Raises:
        OrganizationError: there is no such organization.
    """
    mine = organizations.c.id == find(connection, organization).id
    connection.execute(update(organizations).where(mine).values(disabled_at=None))
    return find(connection, organization)


def limits_of(connection: Connection, organization: str) -> Mapping[str, Limits]:
    """The limits of an organization's own, by model; of ``*``, those that all inherit."""
    rows = connection.execute(select(limits).where(limits.c.organization_id == organization).order_by(limits.c.model))
    return {row.model: _limits(row) for row in rows}


def set_limits(
    connection: Connection, organization: str, model: str, changes: Mapping[str, int | str | None]
) -> Limits:
    """Change the limits of ``organization`` on ``model``, either of which may be ``*``; what they are then.

    ``changes`` are members of :class:`Limits`; ``None`` is inherited again.

    Raises:
        OrganizationError: a quota would have a period and no tokens, or tokens and no period.
    """
    mine = (limits.c.organization_id == organization) & (limits.c.model == model)
    row = connection.execute(select(limits).where(mine).with_for_update()).one_or_none()
    values = {**asdict(_limits(row) if row is not None else _NOTHING), **changes}
    if (values["period"] is None) != (values["period_tokens"] is None):
        raise OrganizationError("A quota needs both a period and its tokens.")
    connection.execute(delete(limits).where(mine))
    if any(value is not None for value in values.values()):
        connection.execute(insert(limits).values(organization_id=organization, model=model, **values))
    return limits_of(connection, organization).get(model, _NOTHING)


def add_credit(
    connection: Connection, organization: str, amount: int, reason: str, id_: str | None = None
) -> Organization:
    """Add ``amount`` nano-units to the account of an organization, of this id or name; a negative amount takes them.

    What has been booked under the same ``id_`` is not booked again; by default one is made.

    Raises:
        OrganizationError: there is no such organization, ``id_`` is none, or something else has been booked under it.
    """
    if id_ is not None and (not is_label(id_, 128) or " " in id_ or id_.startswith(CARRIED_FORWARD)):
        words = f"printable characters without spaces, and does not begin with {CARRIED_FORWARD}"
        raise OrganizationError(f"The id of a credit has 1 to 128 {words}.")
    owner, now = find(connection, organization).id, now_us(connection)
    entry = {"id": id_ or new_id("crd_", now), "organization_id": owner, "amount": amount}
    try:
        with connection.begin_nested():
            connection.execute(insert(credit_entries).values(**entry, reason=reason, created_at=now))
    except IntegrityError:
        _require_same(connection, entry)
    else:
        mine = accounts.c.organization_id == owner
        connection.execute(update(accounts).where(mine).values(balance=accounts.c.balance + amount))
    return find(connection, owner)


def _require_same(connection: Connection, entry: Mapping[str, object]) -> None:
    same = [credit_entries.c[name] == value for name, value in entry.items()]
    if connection.execute(select(credit_entries.c.id).where(*same)).first() is None:
        raise OrganizationError(f"Another credit has been booked as {entry['id']}.")


def _read(
    connection: Connection,
    condition: ColumnElement[bool],
    order: ColumnElement[Any] = organizations.c.created_at,
    most: int | None = None,
) -> Sequence[Organization]:
    columns = (organizations, accounts.c.balance, accounts.c.held)
    joined = organizations.join(accounts)
    wanted = select(*columns).select_from(joined).where(condition).limit(most)
    rows = connection.execute(wanted.order_by(order, organizations.c.id))
    return [Organization(**row._mapping) for row in rows]


def _limits(row: Row[tuple[object, ...]]) -> Limits:
    return Limits(**{name: row._mapping[name] for name in _COLUMNS})
