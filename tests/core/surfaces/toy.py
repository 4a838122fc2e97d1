"""A surface as small as one can be, and different from the others in everything that a surface owns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from sidecar.responses.errors import ApiError
from sidecar.responses.items import InputMessage, item_type
from sidecar.responses.json_text import Json
from sidecar.responses.parts import InputText, part_type
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.request_model import RequestModel
from sidecar.responses.tools import Tool, ToolChoice
from sidecar.surfaces.endpoints import Endpoint, Operation
from sidecar.surfaces.openapi.shorthand import STRING, object_of
from sidecar.surfaces.parameters import Accepted, EachOf, Ignored, Only, Parameter, Refused, request_type
from sidecar.surfaces.surface import Surface


class Note(RequestModel):
    """An item that no other surface has."""

    type: Literal["note"]
    note: str


Part = Annotated[Annotated[InputText, Tag("<input_text>")], Discriminator(part_type)]
Item = Annotated[
    Annotated[InputMessage[Part], Tag("<message>")] | Annotated[Note, Tag("<note>")], Discriminator(item_type)
]
PARAMETERS = (
    Parameter("model", Accepted(), "Who answers."),
    Parameter("input", Accepted(), "What is asked."),
    Parameter("stream", Accepted()),
    Parameter("temperature", Accepted(), "How wild.", default=0.5),
    Parameter("top_p", Refused("A toy has no top_p.")),
    Parameter("truncation", Only(("auto",))),
    Parameter("include", EachOf(("file_search_call.results",))),
    Parameter("reasoning", Accepted()),
    Parameter("reasoning.effort", Only(("low",), "Think less.")),
    Parameter("reasoning.summary", Ignored(), "Toys do not sum up."),
    Parameter("colour", Ignored(), "Any."),
    Parameter("penalty", Only((0,), ignored=True)),
)


def new_response(request: ResponsesRequest, response_id: str, created_at: int) -> Json:
    return {"id": response_id, "toy": True, "created_at": created_at, "temperature": request.temperature}


def extension(node: str, timing: Mapping[str, float], route: str) -> Json:
    return {"made_by": node}


def error_members(error: ApiError, request_id: str) -> Json:
    return {**error.fields(), "request_id": request_id}


TOY = Surface(
    title="Toys",
    description="A toy of an API.",
    endpoints=(
        Endpoint("POST", "/toys", Operation.CREATE_RESPONSE, "infer:run"),
        Endpoint("GET", "/toys/{id}/maker", Operation.RETRIEVE_MODEL, "infer:read"),
    ),
    request_model=request_type(ResponsesRequest[Item, Tool, ToolChoice], PARAMETERS),
    parameters=PARAMETERS,
    unsupported="{name}? Not with toys.",
    type_words={"item": {"function_call": "Toys call nobody."}, "part": {"input_image": "Toys are blind."}},
    codes=("invalid_request", "unsupported_parameter", "model_not_available", "internal"),
    new_response=new_response,
    extension=extension,
    error_members=error_members,
    schemas={
        "Response": object_of("A toy.", {"id": STRING}),
        "ErrorDetails": object_of("Broken.", {"request_id": STRING}),
    },
    example={"model": "bear", "input": "hi"},
)
