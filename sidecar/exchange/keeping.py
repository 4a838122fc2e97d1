"""Whether a request needs something stored, and where its response is to be stored."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.exchange.earlier import Keeping
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.responses.ids import ResponseIds
from sidecar.responses.json_text import Json
from sidecar.responses.request import ResponsesRequest
from sidecar.stored.items import input_items, to_lines
from sidecar.stored.owner import Owner
from sidecar.stored.seals import Place
from sidecar.surfaces.surface import Surface


def check_stores(surface: Surface, request: ResponsesRequest) -> None:
    """Refuse what needs something stored where this node stores nothing for a surface that has stored responses."""
    if surface.stores or not surface.has_stored_responses:
        return
    for param in ("previous_response_id", "store"):
        if getattr(request, param):
            message = f"{param} is not supported: no responses are stored here; send the conversation as 'input'."
            raise ApiError("unsupported_parameter", message, param)


def keeping_of(
    surface: Surface,
    request: ResponsesRequest,
    caller: Caller,
    ids: ResponseIds,
    given: str | list[Json],
    before: Sequence[Json],
) -> Keeping | None:
    """Where the response is stored: if the client says so, or says nothing and continues one that is."""
    previous = request.previous_response_id
    if not surface.stores or not (request.store if "store" in request.model_fields_set else previous is not None):
        return None
    place = Place(ids.response, Owner.of(caller), previous)
    items = input_items(given, ids, {str(item.get("id")) for item in before})
    return Keeping(place, to_lines(items))
