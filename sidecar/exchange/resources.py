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


def answer_at_once(target: Target, surface: Surface, catalog: Catalog) -> Reply:
    """The answer of any endpoint but the one that creates responses; the node is named as the models' owner.

    Raises:
        ApiError: ``model_not_available``.
    """
    match target.operation:
        case Operation.LIST_MODELS:
            data = [_model(name, catalog) for name in catalog.names()]
            return Reply.json({"object": "list", "data": data})
        case Operation.RETRIEVE_MODEL:
            return Reply.json(_model(target.id, catalog))
        case Operation.READ_OPENAPI:
            return Reply.json(document(surface))
        case Operation.CREATE_RESPONSE:
            raise AssertionError("a response is not answered at once")


def _model(name: str, catalog: Catalog) -> Json:
    served = catalog.find(name)
    model = {"id": name, "object": "model", "created": served.created, "owned_by": catalog.node}
    return {**model, "b3os": {"notes": list(served.notes)}} if served.notes else model
