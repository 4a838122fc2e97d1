"""What the page shows of organizations: their limits and how much of them is used, their accounts, their last hour."""

from __future__ import annotations

from sqlalchemy import Connection

from sidecar.admin.status.node import Node
from sidecar.admission.money import decimal
from sidecar.admission.use import Use, Used, read_use
from sidecar.identity.organizations import Organization, page
from sidecar.responses.json_text import Json

_PAGE = 50


def organizations(connection: Connection, node: Node, after: str) -> Json:
    """Some at a time, by name: ``after`` is the last name that is known."""
    found = page(connection, after, _PAGE + 1)
    shown = found[:_PAGE]
    models = [model.name for model in node.catalog()]
    use = read_use(connection, [one.id for one in shown], models, node.defaults)
    return {
        "currency": node.currency,
        "data": [_organization(one, use[one.id]) for one in shown],
        "has_more": len(found) > _PAGE,
    }


def _organization(one: Organization, use: Use) -> Json:
    return {
        "id": one.id,
        "name": one.name,
        "disabled": one.disabled_at is not None,
        "prepaid": one.prepaid,
        "balance": decimal(one.balance),
        "held": decimal(one.held),
        "hour": {
            "requests": use.requests,
            "input_tokens": use.input_tokens,
            "output_tokens": use.output_tokens,
        },
        "limits": [_limit(used) for used in use.limits],
    }


def _limit(used: Used) -> Json:
    """``model`` is ``*`` for what all models share; ``period`` is that of a quota, else empty."""
    key = used.limit.key
    return {
        "kind": key.kind,
        "model": key.model,
        "period": key.period,
        "limit": used.limit.limit,
        "used": used.used,
    }
