"""Requests with tools and formats, as clients write them."""

from dataclasses import replace
from typing import Any

from sidecar.guidance.decision import Guidance, plan_guidance
from sidecar.responses.request import ResponsesRequest
from tests.core import kit

REQUIRED = "required"


def request(**body: Any) -> ResponsesRequest:
    return ResponsesRequest.model_validate({"model": "m", "input": "x", **body})


def tool(name: str, parameters: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": parameters, **more}


def json_schema(schema: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "name": "n", "schema": schema}}


def checked_guidance(asked: ResponsesRequest, **more: Any) -> Guidance:
    """The guidance for ``asked`` by a model that can be guided, once grammars have been made of all schemas."""
    guidance = plan_guidance(asked, True, "refuse", **more)
    kit.check(guidance.unchecked)
    return replace(guidance, unchecked=())
