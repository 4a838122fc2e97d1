"""How organizations are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import typer

from sidecar.admission.limits import Limits
from sidecar.admission.money import decimal
from sidecar.cli.listing import print_json, print_table, time_of
from sidecar.identity.organizations import Organization

_OfModels = Mapping[str, Limits]


def show(organization: Organization, limits: _OfModels, *, as_json: bool) -> None:
    """One organization, whose own limits are ``limits``, by model."""
    members = _members(organization, limits)
    if as_json:
        print_json(members)
        return
    terms = f"prepaid, balance {members['balance']}" if organization.prepaid else f"balance {members['balance']}"
    disabled = "" if organization.disabled_at is None else ", disabled"
    typer.echo(f"{organization.id} {organization.name}: {terms}{disabled}")


def show_all(found: Iterable[tuple[Organization, _OfModels]], inherited: _OfModels, *, as_json: bool) -> None:
    """All organizations with the limits of their own, and the limits that all of them inherit."""
    shown = [_members(organization, limits) for organization, limits in found]
    if as_json:
        print_json({"organizations": shown, "limits": _limits(inherited)})
        return
    rows = [
        [
            one["id"],
            one["name"],
            "active" if one["disabled_at"] is None else "disabled",
            "yes" if one["prepaid"] else "no",
            one["balance"],
            one["held"],
            _text(one["limits"]),
        ]
        for one in shown
    ]
    if inherited:
        rows.append(["*", "-", "-", "-", "-", "-", _text(_limits(inherited))])
    print_table(("ID", "Name", "State", "Prepaid", "Balance", "Held", "Limits"), rows)


def show_limits(organization: str, limits: _OfModels, *, as_json: bool) -> None:
    """The limits of an organization on one model."""
    if as_json:
        print_json({"organization": organization, "limits": _limits(limits)})
    else:
        typer.echo(f"{organization}: {_text(_limits(limits))}")


def _members(organization: Organization, limits: _OfModels) -> dict[str, Any]:
    return {
        "id": organization.id,
        "name": organization.name,
        "prepaid": organization.prepaid,
        "balance": decimal(organization.balance),
        "held": decimal(organization.held),
        "created_at": time_of(organization.created_at),
        "disabled_at": time_of(organization.disabled_at),
        "limits": _limits(limits),
    }


def _limits(limits: _OfModels) -> dict[str, dict[str, int | str]]:
    return {
        model: {name: value for name, value in asdict(of).items() if value is not None} for model, of in limits.items()
    }


def _text(limits: Mapping[str, Mapping[str, int | str]]) -> str:
    """Limits in one line; those on all models stand without a model's name."""
    parts = []
    for model, of in limits.items():
        words = ", ".join(f"{name} {value}" for name, value in of.items()) or "none"
        parts.append(words if model == "*" else f"{model}: {words}")
    return "; ".join(parts) or "-"
