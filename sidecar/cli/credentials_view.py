"""How credentials are shown: once with the secret, and from then on without it."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from sidecar.cli.listing import print_json, print_table, time_of
from sidecar.identity.records import Record
from sidecar.identity.secret import Secret

_COLUMNS = {
    "ID": "id",
    "Name": "name",
    "Ends with": "hint",
    "Organization": "organization",
    "Project": "project",
    "Environment": "environment",
    "User": "user",
    "Scopes": "scopes",
    "Made": "created_at",
    "Expires": "expires_at",
    "Last used": "last_used_at",
    "State": "state",
}
"""Each column, and the member that it shows."""


def show_made(secret: Secret, record: Record, *, as_json: bool) -> None:
    """A credential that was just made. Its secret alone goes to standard output, to be piped to where it belongs."""
    if as_json:
        print_json({"secret": secret.text, **_members(record)})
        return
    typer.echo(secret.text)
    expiry = f"expires {time_of(record.expires_at)}" if record.expires_at else "does not expire"
    typer.echo(f"{record.id} allows {' '.join(sorted(record.scopes))} and {expiry}.", err=True)
    typer.echo("This is the only time that the secret is shown: the store has its hash alone.", err=True)


def show_all(records: Iterable[Record], now: int, *, as_json: bool) -> None:
    """All of ``records``; ``now`` is the store's clock, in microseconds."""
    shown = [{**_members(record), "state": _state(record, now)} for record in records]
    if as_json:
        print_json(shown)
        return
    print_table(tuple(_COLUMNS), (_row(members) for members in shown))


def _members(record: Record) -> dict[str, str | list[str] | None]:
    return {
        "id": record.id,
        "kind": record.kind.value,
        "name": record.name,
        "hint": record.hint,
        "organization": record.organization,
        "project": record.project,
        "environment": record.environment,
        "user": record.user,
        "scopes": sorted(record.scopes),
        "created_at": time_of(record.created_at),
        "expires_at": time_of(record.expires_at),
        "revoked_at": time_of(record.revoked_at),
        "last_used_at": time_of(record.last_used_at),
    }


def _row(members: dict[str, str | list[str] | None]) -> list[str]:
    values = map(members.get, _COLUMNS.values())
    return [" ".join(value) if isinstance(value, list) else value or "-" for value in values]


def _state(record: Record, now: int) -> str:
    if record.revoked_at is not None:
        return "revoked"
    if not record.ended(now):
        return "active"
    return "expired" if record.replaced_by is None else "replaced"
