"""The ask about requests that were made before: for the receipt of one, or a page of the project's log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.events import RequestComplete
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.responses.page import Page
from sidecar.responses.reply import Reply
from sidecar.responses.wording import shown
from sidecar.surfaces.endpoints import Operation, Target

ABOUT_REQUESTS = (Operation.RETRIEVE_REQUEST, Operation.LIST_REQUESTS)
"""The operations on requests that were made before."""


@dataclass(frozen=True, slots=True)
class LookUpRequests(Ask[Reply]):
    """Answer a request about others of the same project and environment. ``id`` is empty where a page is wanted."""

    id: str
    caller: Caller
    page: Page

    @classmethod
    def needed(cls, facts: Facts) -> None:
        """Never where a response is to be created."""

    @classmethod
    def of(cls, target: Target, request: RequestComplete) -> Self:
        """The ask of a request for ``target``.

        Raises:
            ApiError: ``invalid_request``, there is no such page.
        """
        query = request.headers[":path"].partition("?")[2]
        page = Page.of(query) if target.operation is Operation.LIST_REQUESTS else Page()
        return cls(target.id, request.caller, page)


def no_such_request(id_: str) -> ApiError:
    """What is said of a request that was not made, is no longer known or is another's: always the same."""
    return ApiError("not_found", f"There is no request {shown(id_)}.")
