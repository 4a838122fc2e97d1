"""Receipts: what became of each request that was admitted or refused, and the logs of projects that they make up.

A receipt is read from the ledger's own rows: a reservation with its record, and a correction added to that. So what it
says was charged is what the account was charged, and it holds nothing of a conversation. A request that is under way
has a reservation alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from sidecar.admission.bill import CORRECTION
from sidecar.admission.money import decimal
from sidecar.admission.periods import SECOND
from sidecar.responses.json_text import Json
from sidecar.responses.page import Page, nothing_after
from sidecar.store.tables import reservations, usage_records

RESPONSES = "responses"
"""The endpoint of requests whose rows name none, which are older than the others."""

_TOKENS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
_UNPRICED = "{}"

_mine = reservations.c
_record, _correction = usage_records.alias("record"), usage_records.alias("correction")


def _sum(name: str) -> ColumnElement[Any]:
    return func.coalesce(_record.c[name], 0) + func.coalesce(_correction.c[name], 0)


def _either(name: str) -> ColumnElement[Any]:
    # Retention may have left the correction alone.
    return func.coalesce(_record.c[name], _correction.c[name])


_RECEIPT = (
    select(
        reservations,
        _either("outcome").label("outcome"),
        _either("price_terms").label("price_terms"),
        _either("attempts").label("attempts"),
        _either("first_token_ms").label("first_token_ms"),
        _either("total_ms").label("total_ms"),
        _sum("price").label("charge"),
        *(_sum(name).label(f"used_{name}") for name in _TOKENS),
    )
    .select_from(
        reservations.outerjoin(_record, _record.c.id == _mine.id).outerjoin(
            _correction, _correction.c.id == _mine.id + CORRECTION
        )
    )
    # What was given up before it was made is nobody's.
    .where(_mine.organization_id != "")
)


@dataclass(frozen=True, slots=True)
class Log:
    """Whose requests are meant: those of an organization, of one project of it, or of one environment of that.

    Without any they are all that there are.
    """

    organization: str | None = None
    project: str | None = None
    environment: str | None = None

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """Which reservations they have."""
        members = (self.organization, self.project, self.environment)
        for column, value in zip((_mine.organization_id, _mine.project, _mine.environment), members, strict=True):
            if value is not None:
                yield column == value


def read_receipt(connection: Connection, log: Log, request_id: str) -> Json | None:
    """The receipt of the request that was answered with this ``x-request-id``; ``None`` where the log has none.

    Of several, as clients within the operator's own network may make them, it is the newest.
    """
    named = _RECEIPT.where(*log.conditions(), _mine.request_id == request_id)
    row = connection.execute(named.order_by(_mine.id.desc()).limit(1)).one_or_none()
    return None if row is None else receipt_of(row)


def read_receipt_of_response(connection: Connection, log: Log, ulid: str) -> Json | None:
    """The same by the reservation's own id, which is the response's without ``resp_``."""
    row = connection.execute(_RECEIPT.where(*log.conditions(), _mine.id == ulid)).one_or_none()
    return None if row is None else receipt_of(row)


def read_log(connection: Connection, log: Log, page: Page) -> Json:
    """A page of a log, as OpenAI's lists are.

    Raises:
        ApiError: ``invalid_request``, the request ``page.after`` is not in the log.
    """
    wanted: Select[Any] = _RECEIPT.where(*log.conditions())
    if page.after is not None:
        wanted = wanted.where(_beyond(connection, log, page))
    order = _mine.id.asc() if page.order == "asc" else _mine.id.desc()
    rows = connection.execute(wanted.order_by(order).limit(page.limit + 1)).all()
    data = [receipt_of(row) for row in rows[: page.limit]]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": len(rows) > page.limit,
    }


def _beyond(connection: Connection, log: Log, page: Page) -> ColumnElement[bool]:
    named = select(_mine.id).where(*log.conditions(), _mine.request_id == page.after)
    place = connection.scalar(named.order_by(_mine.id.desc()).limit(1))
    if place is None:
        raise nothing_after(page.after or "")
    older: ColumnElement[bool] = _mine.id < place
    return _mine.id > place if page.order == "asc" else older


def receipt_of(row: Row[Any]) -> Json:
    """The receipt in a row of :data:`_RECEIPT`, as clients get it. Money is a decimal in text."""
    settled = row.settled_at is not None
    terms = json.loads(row.price_terms) if settled and row.price_terms not in (None, _UNPRICED) else None
    attempts: Sequence[Json] = json.loads(row.attempts) if row.attempts else []
    return {
        "id": row.request_id,
        "object": "request",
        "created_at": row.created_at // SECOND,
        "endpoint": row.endpoint or RESPONSES,
        "response_id": f"resp_{row.id}" if row.refusal is None else None,
        "client_request_id": row.client_request_id,
        "model": row.told_model or row.model,
        "route": attempts[-1]["route"] if attempts else None,
        "attempts": attempts,
        "stream": bool(row.stream),
        "outcome": row.refusal or row.outcome if settled else "in_progress",
        "usage": {name: int(row._mapping[f"used_{name}"]) for name in _TOKENS} if settled else None,
        "price": terms,
        "hold": decimal(row.hold),
        "charge": decimal(int(row.charge)) if settled else None,
        "timings": {
            "started_at": _time(row.created_at),
            "first_token_ms": row.first_token_ms,
            "total_ms": row.total_ms,
        },
        "organization": row.organization_id,
        "project": row.project,
        "environment": row.environment,
        "key": row.credential_id,
        "end_user": row.end_user,
        "tags": row.tags.split(",") if row.tags else [],
        "session": row.session,
    }


def _time(microseconds: int) -> str:
    """As ISO 8601 has it, to the millisecond."""
    at = datetime.fromtimestamp(microseconds // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{microseconds % SECOND // 1000:03}Z"
