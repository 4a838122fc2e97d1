"""What was used and what it costs, summed over the ledger's records.

The store sums whole numbers, so the sums are exact; rows come one after another, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    TableValuedAlias,
    func,
    literal_column,
    select,
    true,
)

from sidecar.admission.bill import CORRECTION, COUNTS
from sidecar.admission.periods import DAY, SECOND
from sidecar.store.tables import credentials, organizations, usage_records

_ROWS_AT_A_TIME = 500
_EPOCH = date(1970, 1, 1)
# That of the terms of a record's price. As plain text: PostgreSQL takes no two parameters for one expression.
_CURRENCY = {
    "sqlite": "json_extract(usage_records.price_terms, '$.currency')",
    "postgresql": "CAST(usage_records.price_terms AS json) ->> 'currency'",
}
# The tags of a record as a JSON array; they hold neither commas nor quotation marks.
_LISTED = """'["' || replace(usage_records.tags, ',', '","') || '"]'"""

TAG = "tag"
"""The group in which a record may count several times: under each of its tags."""

GROUPS = ("day", "organization", "key", "model", "end_user", "session", TAG)
"""What records can be summed by, in the order of the columns."""

_COLUMNS = {
    "day": ("day",),
    "organization": ("organization", "organization_name"),
    "key": ("key", "key_name"),
    "model": ("model",),
    "end_user": ("end_user",),
    "session": ("session",),
    TAG: (TAG,),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records are summed, and by what.

    ``by`` are some of :data:`GROUPS`. Days are of UTC and say when a record was written, which is when its answer was
    over: the sums of a day that has passed change no more. ``since`` and ``until`` are both included.
    ``organization`` is an id. By tag a record with several counts under each of them: such sums add up to more than
    the whole, which is what records come to that are summed by nothing.
    """

    by: Sequence[str]
    since: date | None = None
    until: date | None = None
    organization: str | None = None


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of one group of records.

    ``group`` holds the value of each group that was asked for, under its name, and the names of organizations and keys
    under ``organization_name`` and ``key_name``, empty where there is none. ``counts`` are those of ``bill.COUNTS``.
    ``price`` is in nano-units of ``currency``, which is ``None`` for models that had no price.
    """

    group: Mapping[str, str]
    requests: int
    counts: Mapping[str, int]
    price: int
    currency: str | None


def read_usage(connection: Connection, selection: Selection) -> Iterator[Sums]:
    """The sums, sorted by their groups. Amounts in different currencies are never added up."""
    groups = [group for group in GROUPS if group in selection.by]
    query = _query(connection, selection, groups)
    for row in connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(query).mappings():
        shown = {name: _shown(name, row[name]) for name in columns_of(groups)}
        counts = {name: int(row[name]) for name in COUNTS}
        yield Sums(shown, int(row["requests"]), counts, int(row["price"]), row["currency"])


def columns_of(groups: Sequence[str]) -> list[str]:
    """The names under which the values of ``groups`` are shown."""
    return [name for group in GROUPS if group in groups for name in _COLUMNS[group]]


def find_organization(connection: Connection, name: str) -> str | None:
    """The id of the organization of this id or else of this name; ``None`` where there is none.

    An id that an operator's own authentication has found may be in the records and nowhere else.
    """
    for found in (
        select(organizations.c.id).where(organizations.c.id == name),
        select(organizations.c.id).where(organizations.c.name == name),
        select(usage_records.c.organization_id).where(usage_records.c.organization_id == name).limit(1),
    ):
        if (id_ := connection.scalar(found)) is not None:
            return str(id_)
    return None


def _query(connection: Connection, selection: Selection, groups: Sequence[str]) -> Select[Any]:
    records, tags = usage_records.c, _tags(connection)
    columns: dict[str, ColumnElement[Any]] = {
        "day": literal_column(f"usage_records.created_at / {DAY}"),
        "organization": records.organization_id,
        "key": records.credential_id,
        "model": records.model,
        "end_user": records.end_user,
        "session": records.session,
        TAG: tags.c.value,
    }
    currency: ColumnElement[Any] = literal_column(_CURRENCY[connection.dialect.name])
    keys = [*(columns[group] for group in groups), currency]
    query = select(
        *(columns[group].label(group) for group in groups),
        currency.label("currency"),
        func.count().filter(~records.id.endswith(CORRECTION)).label("requests"),
        *(func.sum(records[name]).label(name) for name in COUNTS),
        func.sum(records.price).label("price"),
    )
    joined: FromClause = usage_records
    if "organization" in groups:
        query = query.add_columns(func.max(organizations.c.name).label("organization_name"))
        joined = joined.outerjoin(organizations, organizations.c.id == records.organization_id)
    if "key" in groups:
        query = query.add_columns(func.max(credentials.c.name).label("key_name"))
        joined = joined.outerjoin(credentials, credentials.c.id == records.credential_id)
    if TAG in groups:
        # What has no tag stays, under none.
        joined = joined.outerjoin(tags, true())
    return query.select_from(joined).where(*_conditions(selection)).group_by(*keys).order_by(*keys)


def _tags(connection: Connection) -> TableValuedAlias:
    """The tags of a record, a row each."""
    if connection.dialect.name == "sqlite":
        return func.json_each(literal_column(_LISTED)).table_valued("value", name="tags")
    listed = func.string_to_array(usage_records.c.tags, ",")
    return func.unnest(listed).table_valued("value", name="tags").render_derived()


def _conditions(selection: Selection) -> Iterator[ColumnElement[bool]]:
    records = usage_records.c
    if selection.since is not None:
        yield records.created_at >= _microseconds(selection.since)
    if selection.until is not None:
        yield records.created_at < _microseconds(selection.until + timedelta(days=1))
    if selection.organization is not None:
        yield records.organization_id == selection.organization


def _shown(name: str, value: Any) -> str:
    if name == "day":
        return (_EPOCH + timedelta(days=value)).isoformat()
    return value or ""


def _microseconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * SECOND
