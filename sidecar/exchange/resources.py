"""Requests that are answered at once, without the model: the lists and documents beside the responses themselves.

Source: OpenAI's Models API, as far as SDKs read it.
"""

from __future__ import annotations

from sidecar.exchange.catalog import Catalog
from sidecar.responses.json_text import Json
from sidecar.responses.reply import Reply
from sidecar.surfaces.endpoints import Operation, Target
from sidecar.surfaces.openapi import document
from sidecar.surfaces.surface import Surface


def answer_at_once(target: Target, surface: Surface, catalog: Catalog, team: str) -> Reply:
    """The answer of an endpoint that is not about responses, to ``team``, the organization that asks.

    The node is named as the owner of models that the surface knows no other of.

    Raises:
        ApiError: ``model_not_available``.
    """
    match target.operation:
        case Operation.LIST_MODELS:
            data = [_model(name, surface, catalog, team) for name in catalog.names(surface).listed(team)]
            return Reply.json({"object": "list", "data": data})
        case Operation.RETRIEVE_MODEL:
            return Reply.json(_model(target.id, surface, catalog, team))
        case Operation.READ_OPENAPI:
            return Reply.json(document(surface))
        case _:
            raise AssertionError("what is about a response is not answered at once")


def _model(name: str, surface: Surface, catalog: Catalog, team: str) -> Json:
    named = catalog.names(surface).find(name, team)
    served = catalog.model(named.model)
    model = {"id": named.told, "object": "model", "created": served.created, "owned_by": named.owner or catalog.node}
    told = surface.tells_notes and served.notes
    return {**model, "b3os": {"notes": list(served.notes)}} if told else model
