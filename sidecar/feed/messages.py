"""The feed's messages, from the rows of the ledger."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Row

from sidecar.admission.money import decimal
from sidecar.feed.usage_feed_pb2 import Money, StreamResponse, UsageRecord

_UNPRICED = "{}"


def response_of(row: Row[Any], currency: str) -> StreamResponse:
    """The message of a usage record; ``currency`` is that of what costs nothing."""
    priced = row.price_terms != _UNPRICED
    record = UsageRecord(
        id=row.id,
        request_id=row.request_id,
        organization=row.organization_id,
        key=row.credential_id or "",
        model=row.model,
        node=row.node,
        input_tokens=row.input_tokens,
        cached_tokens=row.cached_tokens,
        output_tokens=row.output_tokens,
        reasoning_tokens=row.reasoning_tokens,
        guided_tokens=row.guided_tokens,
        image_bytes=row.image_bytes,
        price=Money(
            amount=decimal(row.price),
            currency=json.loads(row.price_terms)["currency"] if priced else currency,
        ),
        price_terms=row.price_terms if priced else "",
        outcome=row.outcome,
        stream=row.stream,
        started_at=row.started_at,
        first_token_ms=row.first_token_ms,
        total_ms=row.total_ms,
        created_at=row.created_at,
        end_user=row.end_user,
        tags=row.tags,
    )
    return StreamResponse(record=record, cursor=row.id)
