"""The ask of a request about a response that is stored: to be fetched, deleted, or told what it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qs

from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.events import RequestComplete
from sidecar.responses.errors import ApiError
from sidecar.responses.page import Page
from sidecar.responses.reply import Reply
from sidecar.responses.wording import shown
from sidecar.stored.owner import Owner
from sidecar.surfaces.endpoints import Operation, Target
from sidecar.surfaces.surface import Surface

ABOUT_ONE = (Operation.RETRIEVE_RESPONSE, Operation.DELETE_RESPONSE, Operation.LIST_INPUT_ITEMS)
"""The operations on a response that is stored."""


@dataclass(frozen=True, slots=True)
class LookUp(Ask[Reply]):
    """Answer a request about a response that is stored."""

    operation: Operation
    id: str
    owner: Owner
    page: Page

    @classmethod
    def needed(cls, facts: Facts) -> None:
        """Never where a response is to be created."""

    @classmethod
    def of(cls, target: Target, request: RequestComplete, surface: Surface) -> Self:
        """The ask of a request for ``target``.

        Raises:
            ApiError: ``not_found``, nothing is stored here. ``invalid_request``, there is no such page.
                ``unsupported_parameter``, it is asked for as a stream.
        """
        if not surface.stores:
            raise not_found(target.id)
        query = request.headers[":path"].partition("?")[2]
        page = Page()
        if target.operation is Operation.LIST_INPUT_ITEMS:
            page = Page.of(query)
        elif target.operation is Operation.RETRIEVE_RESPONSE:
            _refuse_a_stream(query)
        return cls(target.operation, target.id, Owner.of(request.caller), page)


def _refuse_a_stream(query: str) -> None:
    """An SDK that is given JSON where it waits for a stream finds no event in it, and no fault either."""
    given = parse_qs(query, keep_blank_values=True)
    name = next((name for name in ("stream", "starting_after") if given.get(name, ["false"]) != ["false"]), None)
    if name is not None:
        raise ApiError("unsupported_parameter", f"{name} is not supported: a stored response is told as JSON.", name)


def not_found(id_: str) -> ApiError:
    """What is said of a response that is not there, has expired, was deleted or is another's: always the same."""
    return ApiError("not_found", f"There is no response {shown(id_)}.")
