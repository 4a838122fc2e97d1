"""Requests with tools and formats, as clients write them."""

from typing import Any

from sidecar.responses.request import ResponsesRequest

REQUIRED = "required"


def request(**body: Any) -> ResponsesRequest:
    return ResponsesRequest.model_validate({"model": "m", "input": "x", **body})


def tool(name: str, parameters: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": parameters, **more}


def json_schema(schema: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "name": "n", "schema": schema}}
