"""Requests to the node surface, in short."""

import json
from typing import Any

import pytest

from sidecar.responses.errors import ApiError
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces.node import NODE

JSON_HEADERS = {"content-type": "application/json"}
USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
TOOL = {"type": "function", "name": "f"}


def accept(**parameters: Any) -> ResponsesRequest:
    values = {"model": "m", "input": "hi"} | parameters
    return NODE.accept(JSON_HEADERS, json.dumps(values).encode())


def refusal(**parameters: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        accept(**parameters)
    return caught.value


def levels(count: int) -> dict[str, Any]:
    """A schema of ``count`` levels."""
    return {} if count == 1 else {"items": levels(count - 1)}


def schema_format(schema: Any = None, **members: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "name": "answer", "schema": schema or {}} | members}


def user_part(**members: Any) -> dict[str, Any]:
    """Parameters with one user message of one part."""
    return {"input": [{"role": "user", "content": [members]}]}
