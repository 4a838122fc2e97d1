"""``responses-sidecar usage`` and ``reconcile``: what the ledger holds, and whether its sums are right."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated

import typer

from sidecar.cli.failing import fail
from sidecar.cli.options import AsJson, ConfigFile, seconds_of


class _By(StrEnum):
    DAY = "day"
    ORGANIZATION = "organization"
    KEY = "key"
    MODEL = "model"
    END_USER = "end_user"
    SESSION = "session"
    TAG = "tag"


def usage(
    config: ConfigFile,
    by: Annotated[
        list[_By] | None, typer.Option(help="What to sum by; several are allowed. By day by default.")
    ] = None,
    since: Annotated[datetime | None, typer.Option("--from", formats=["%Y-%m-%d"], help="The first day (UTC).")] = None,
    until: Annotated[datetime | None, typer.Option("--to", formats=["%Y-%m-%d"], help="The last day (UTC).")] = None,
    organization: Annotated[str | None, typer.Option(help="Only that of one organization, by its name or id.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was used and what it costs.

    By tag, a request with several counts under each of them; the total counts it once.
    """
    from sidecar.admission.usage import TAG, Selection, find_organization, read_usage
    from sidecar.cli.transaction import transaction
    from sidecar.cli.usage_view import show_usage

    if as_csv and as_json:
        raise typer.BadParameter("--csv and --json do not go together")
    groups = list(dict.fromkeys(group.value for group in by or [_By.DAY]))
    with transaction(config, "read") as connection:
        id_ = find_organization(connection, organization) if organization is not None else None
        if organization is not None and id_ is None:
            fail(f"There is no organization {organization}.", 1)
        selection = Selection(groups, since and since.date(), until and until.date(), id_)
        rows = read_usage(connection, selection)
        whole = read_usage(connection, replace(selection, by=())) if TAG in groups else None
        show_usage(groups, rows, whole, as_csv=as_csv, as_json=as_json)


def reconcile(
    config: ConfigFile,
    open_for: Annotated[
        str, typer.Option("--open-for", metavar="DURATION", help="For how long a reservation may be open: 1h, 30m …")
    ] = "1h",
    as_json: AsJson = False,
) -> None:
    """Prove the ledger's sums.

    Exit status 1: something does not agree.
    """
    from sidecar.admission.reconcile import reconcile
    from sidecar.cli.listing import print_json, print_table
    from sidecar.cli.transaction import transaction

    seconds = seconds_of(open_for)
    with transaction(config, "read") as connection:
        findings = list(reconcile(connection, seconds))
    if as_json:
        found = [{"check": found.check, "subject": found.subject, "words": found.words} for found in findings]
        print_json({"findings": found})
    elif findings:
        print_table(["Check", "Subject", ""], [[found.check, found.subject, found.words] for found in findings])
    else:
        typer.echo("The ledger's sums agree.")
    raise typer.Exit(1 if findings else 0)
