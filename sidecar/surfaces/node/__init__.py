"""The node surface, ``POST /v1/infer/responses`` and the models it takes: stateless, the node's own models."""

from __future__ import annotations

from sidecar.responses.errors import CODES
from sidecar.responses.pairing import check_pairing
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces.endpoints import Endpoint, Operation
from sidecar.surfaces.node.parameters import EXAMPLE, PARAMETERS
from sidecar.surfaces.node.response import RESPONSE_SCHEMA, extension, new_response
from sidecar.surfaces.node.unions import TYPE_WORDS, NodeRequest
from sidecar.surfaces.parameters import request_type
from sidecar.surfaces.surface import Surface

_OTHERS_CODES = (
    "deadline_exceeded",
    "stream_interrupted",
    "policy_denied",
    "response_in_progress",
    "idempotency_in_progress",
    "idempotency_mismatch",
)


def _check_pairing(request: ResponsesRequest) -> None:
    check_pairing(request.input)


NODE = Surface(
    title="Responses API",
    description="A stateless subset of the OpenAI Responses API on the node's own models.",
    endpoints=(
        Endpoint("POST", "/v1/infer/responses", Operation.CREATE_RESPONSE, "infer:run"),
        Endpoint("GET", "/v1/infer/models", Operation.LIST_MODELS, "infer:read"),
        Endpoint("GET", "/v1/infer/models/{id}", Operation.RETRIEVE_MODEL, "infer:read", slashes=True),
        Endpoint("GET", "/v1/infer/openapi.json", Operation.READ_OPENAPI, None),
    ),
    request_model=request_type(NodeRequest, PARAMETERS),
    parameters=PARAMETERS,
    unsupported="{name} is not supported on this node",
    type_words=TYPE_WORDS,
    checks=(_check_pairing,),
    codes=tuple(code for code in CODES if code not in _OTHERS_CODES),
    new_response=new_response,
    extension=extension,
    schemas={"Response": RESPONSE_SCHEMA},
    example=EXAMPLE,
)
