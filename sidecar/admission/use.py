"""How organizations stand with their limits, and what they had of late, for an operator to look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, func, select

from sidecar.admission.balances import OF_MODELS, Key, Level, Limit
from sidecar.admission.bill import CORRECTION
from sidecar.admission.limits import Limits
from sidecar.admission.terms import TermsReader
from sidecar.store import now_us
from sidecar.store.tables import balances, usage_records

_HOUR = 3_600_000_000
_KINDS = (*OF_MODELS, "concurrent", "quota")


@dataclass(frozen=True, slots=True)
class Used:
    """How much of one limit is used: of a rate in the last minute or so, of the others now."""

    limit: Limit
    used: int


@dataclass(slots=True)
class Use:
    """That of one organization: its limits, and the sums of the records of its last hour."""

    limits: list[Used] = field(default_factory=list)
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def read_use(
    connection: Connection, organizations: Sequence[str], models: Sequence[str], defaults: Limits
) -> dict[str, Use]:
    """The use of each of ``organizations`` (ids), of the limits that hold for it on ``models``.

    What workers have taken in advance for a lease counts as used.
    """
    now, terms = now_us(connection), TermsReader(defaults)
    terms.load(connection, organizations)
    levels = _levels(connection, organizations)
    found = {}
    for id_ in organizations:
        # What is limited on all models together comes with each of them.
        limits = dict.fromkeys(limit for model in models for limit in terms.limits(id_, model, now))
        found[id_] = Use([Used(limit, _used(limit, levels, now)) for limit in limits])
    for row in _last_hour(connection, organizations, now):
        use = found[row.organization_id]
        use.requests, use.input_tokens, use.output_tokens = int(row.requests), int(row.input), int(row.output)
    return found


def _levels(connection: Connection, organizations: Sequence[str]) -> dict[Key, Level]:
    of = balances.c
    rows = connection.execute(select(balances).where(of.organization_id.in_(organizations), of.kind.in_(_KINDS)))
    return {Key(row.organization_id, row.model, row.kind, row.period): Level(row.level, row.updated_at) for row in rows}


def _used(limit: Limit, levels: dict[Key, Level], now: int) -> int:
    level = levels.get(limit.key, limit.start(now))
    return limit.limit - limit.bucket(level).at(now).left if limit.key.kind in OF_MODELS else level.level


def _last_hour(connection: Connection, organizations: Sequence[str], now: int) -> Iterable[Row[Any]]:
    of = usage_records.c
    return connection.execute(
        select(
            of.organization_id,
            func.count().filter(~of.id.endswith(CORRECTION)).label("requests"),
            func.sum(of.input_tokens).label("input"),
            func.sum(of.output_tokens).label("output"),
        )
        .where(of.organization_id.in_(organizations), of.created_at >= now - _HOUR)
        .group_by(of.organization_id)
    )
