"""The bureau surface, ``POST /v1/responses``: OpenAI's endpoint as it is, for teams, by a catalog of models."""

from __future__ import annotations

from dataclasses import replace

from sidecar.config.models import BureauSettings
from sidecar.responses.errors import CODES
from sidecar.responses.pairing import check_pairing
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces.bounds import Bounds
from sidecar.surfaces.bureau.answers import ANSWER_SCHEMAS
from sidecar.surfaces.bureau.attribution import HEADERS, attribution
from sidecar.surfaces.bureau.catalog import CatalogNames
from sidecar.surfaces.bureau.errors import ERROR_DETAILS, error_members
from sidecar.surfaces.bureau.native import NATIVE_PARAMETERS, NativeBureauRequest
from sidecar.surfaces.bureau.native import new_response as new_native_response
from sidecar.surfaces.bureau.parameters import EXAMPLE, PARAMETERS
from sidecar.surfaces.bureau.receipts import RECEIPT_SCHEMAS
from sidecar.surfaces.bureau.response import MODEL_SCHEMA, RESPONSE_SCHEMA, extension, new_response
from sidecar.surfaces.bureau.unions import TYPE_WORDS, BureauRequest
from sidecar.surfaces.credentials import Credentials
from sidecar.surfaces.endpoints import Endpoint, Operation
from sidecar.surfaces.parameters import request_type
from sidecar.surfaces.surface import Surface


def _check_pairing(request: ResponsesRequest) -> None:
    check_pairing(request.input)


_TRITON = Surface(
    title="Responses API",
    description="The OpenAI Responses API for the models of a catalog.",
    endpoints=(
        Endpoint("POST", "/v1/responses", Operation.CREATE_RESPONSE, "infer:run"),
        Endpoint("POST", "/v1/responses/compact", Operation.COMPACT_RESPONSE, "infer:run"),
        Endpoint("GET", "/v1/responses/{id}", Operation.RETRIEVE_RESPONSE, "infer:run"),
        Endpoint("DELETE", "/v1/responses/{id}", Operation.DELETE_RESPONSE, "infer:run"),
        Endpoint("GET", "/v1/responses/{id}/input_items", Operation.LIST_INPUT_ITEMS, "infer:run"),
        Endpoint("GET", "/v1/requests", Operation.LIST_REQUESTS, "infer:run"),
        Endpoint("GET", "/v1/requests/{id}", Operation.RETRIEVE_REQUEST, "infer:run"),
        Endpoint("GET", "/v1/models", Operation.LIST_MODELS, "infer:read"),
        Endpoint("GET", "/v1/models/{id}", Operation.RETRIEVE_MODEL, "infer:read", slashes=True),
        Endpoint("GET", "/v1/openapi.json", Operation.READ_OPENAPI, None),
    ),
    request_model=request_type(BureauRequest, PARAMETERS),
    parameters=PARAMETERS,
    unsupported="{name} is not supported by this model",
    type_words=TYPE_WORDS,
    checks=(_check_pairing,),
    codes=tuple(CODES),
    new_response=new_response,
    extension=extension,
    error_members=error_members,
    schemas={
        **ANSWER_SCHEMAS,
        **RECEIPT_SCHEMAS,
        "Response": RESPONSE_SCHEMA,
        "Model": MODEL_SCHEMA,
        "ErrorDetails": ERROR_DETAILS,
    },
    example=EXAMPLE,
    credentials=Credentials(keys=("project",), key_header="x-api-key", sessions=False),
    names=CatalogNames,
    attribution=attribution,
    bounds=Bounds(request_bytes=1024 * 1024, seconds=240.0, silence=30.0, search_seconds=600.0),
    noun="service",
    place="this endpoint",
    interrupted="stream_interrupted",
    headers=HEADERS,
    tells_notes=False,
    directed=True,
    settings=BureauSettings(),
)

BUREAU = replace(
    _TRITON,
    native=replace(
        _TRITON,
        request_model=request_type(NativeBureauRequest, NATIVE_PARAMETERS),
        parameters=NATIVE_PARAMETERS,
        checks=(),
        new_response=new_native_response,
    ),
)
