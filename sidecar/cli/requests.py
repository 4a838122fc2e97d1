"""``responses-sidecar requests``: what became of requests, and what they cost; never what was said in them."""

from __future__ import annotations

from typing import Annotated

import typer

from sidecar.cli.failing import fail
from sidecar.cli.options import AsJson, ConfigFile

app = typer.Typer(help="Requests: what became of them, and what they cost.", no_args_is_help=True)


@app.command("list")
def list_(
    config: ConfigFile,
    organization: Annotated[str | None, typer.Option(help="Only those of one organization, by its name or id.")] = None,
    project: Annotated[str | None, typer.Option(help="Only those of one project of it.")] = None,
    environment: Annotated[str | None, typer.Option(help="Only those of one environment of that.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, the newest first.")] = 20,
    after: Annotated[str | None, typer.Option(help="Only those before this one: the id of a request.")] = None,
    as_json: AsJson = False,
) -> None:
    """List requests, the newest first: those under way, those that are over, and refused ones of projects."""
    from sidecar.admission.receipts import Log, read_log
    from sidecar.admission.usage import find_organization
    from sidecar.cli.requests_view import show_log
    from sidecar.cli.transaction import transaction
    from sidecar.responses.errors import ApiError
    from sidecar.responses.page import Page

    if project is not None and organization is None:
        raise typer.BadParameter("a project is one of an organization: --organization is needed")
    if environment is not None and project is None:
        raise typer.BadParameter("an environment is one of a project: --project is needed")
    with transaction(config, "read") as connection:
        id_ = find_organization(connection, organization) if organization is not None else None
        if organization is not None and id_ is None:
            fail(f"There is no organization {organization}.", 1)
        try:
            listed = read_log(connection, Log(id_, project, environment), Page(limit, "desc", after))
        except ApiError as error:
            fail(error.message, 1)
    show_log(listed, as_json=as_json)


@app.command()
def show(
    request: Annotated[str, typer.Argument(metavar="ID", help="A request's x-request-id, or a response's id.")],
    config: ConfigFile,
    as_json: AsJson = False,
) -> None:
    """Show what became of one request.

    Exit status 1: there is no such request, or it was never admitted.
    """
    from sidecar.admission.receipts import Log, read_receipt, read_receipt_of_response
    from sidecar.cli.requests_view import show_receipt
    from sidecar.cli.transaction import transaction

    with transaction(config, "read") as connection:
        if request.startswith("resp_"):
            found = read_receipt_of_response(connection, Log(), request.removeprefix("resp_"))
        else:
            found = read_receipt(connection, Log(), request)
    if found is None:
        fail(f"There is no request {request}.", 1)
    show_receipt(found, as_json=as_json)
