"""The node surface, ``POST /v1/infer/responses`` and the models it takes: stateless, the node's own models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from sidecar.responses.errors import ApiError
from sidecar.responses.open_items import Json
from sidecar.responses.pairing import check_pairing
from sidecar.responses.request import Include, ResponsesRequest
from sidecar.responses.response import new_response
from sidecar.surfaces.endpoints import Endpoint, Operation
from sidecar.surfaces.surface import Surface

_LOGPROBS = "message.output_text.logprobs"
NOT_STORED = "Nothing is stored on this node; send the whole conversation as 'input' each turn (store: false)."


def _refuse_stored_state(request: ResponsesRequest) -> None:
    for name in ("previous_response_id", "conversation", "prompt"):
        if getattr(request, name) is not None:
            raise _unsupported(f"{name} is not supported. {NOT_STORED}", name)


def _refuse_what_the_node_cannot_do(request: ResponsesRequest) -> None:
    if request.background:
        raise _unsupported("background: true is not supported on this node", "background")
    if request.truncation == "auto":
        raise _unsupported("truncation: auto is not supported; the node never drops input items", "truncation")
    for name in ("top_logprobs", "max_tool_calls"):
        if getattr(request, name) is not None:
            raise _unsupported(f"{name} is not supported on this node", name)
    for index, include in enumerate(request.include):
        if include == _LOGPROBS:
            raise _unsupported(f"{include} is not supported on this node", f"include[{index}]")


def _check_pairing(request: ResponsesRequest) -> None:
    check_pairing(request.input)


def _unsupported(message: str, param: str) -> ApiError:
    return ApiError("unsupported_parameter", message, param)


def _always(value: Any) -> bool:
    return True


def _if_empty(value: Any) -> bool:
    return value in ([], {})


def _if_zero(value: Any) -> bool:
    return type(value) in (int, float) and value == 0


def _extension(node: str, timing: Mapping[str, float]) -> Json:
    return {"b3os": {"route": "local", "node": node, "timing": dict(timing)}}


_IGNORED: Json = {"description": "Accepted and ignored."}
_ONLY_NULL: Json = {"type": "null"}

NODE = Surface(
    endpoints=(
        Endpoint("POST", "/v1/infer/responses", Operation.CREATE_RESPONSE),
        Endpoint("GET", "/v1/infer/models", Operation.LIST_MODELS),
        Endpoint("GET", "/v1/infer/models/{id}", Operation.RETRIEVE_MODEL),
        Endpoint("GET", "/v1/infer/openapi.json", Operation.READ_OPENAPI),
    ),
    tolerated={
        "client_metadata": _always,
        "prompt_cache_retention": _always,
        "prompt_cache_options": _always,
        "context_management": _if_empty,
        "frequency_penalty": _if_zero,
        "presence_penalty": _if_zero,
    },
    checks=(_refuse_stored_state, _refuse_what_the_node_cannot_do, _check_pairing),
    narrowed={
        "previous_response_id": _ONLY_NULL | {"description": "Responses are not stored; send the conversation."},
        "conversation": _ONLY_NULL,
        "prompt": _ONLY_NULL,
        "background": {"enum": [False, None]},
        "truncation": {"enum": ["disabled", None], "description": "The node never drops input items."},
        "top_logprobs": _ONLY_NULL,
        "max_tool_calls": _ONLY_NULL,
        "include": _IGNORED
        | {"type": ["array", "null"], "items": {"enum": [name for name in get_args(Include) if name != _LOGPROBS]}},
        "client_metadata": _IGNORED,
        "prompt_cache_retention": _IGNORED,
        "prompt_cache_options": _IGNORED,
        "context_management": {"enum": [[], {}, None]} | _IGNORED,
        "frequency_penalty": {"enum": [0, None]} | _IGNORED,
        "presence_penalty": {"enum": [0, None]} | _IGNORED,
    },
    new_response=new_response,
    extension=_extension,
)
