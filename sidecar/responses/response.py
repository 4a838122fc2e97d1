"""The response object: what it echoes of its request, and its members before the answer fills them.

Source: the node surface's response schema. Every member of it is always present; ``completed_at`` is null until the
response has completed.
"""

from __future__ import annotations

from sidecar.responses.open_items import Json
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.text_format import JsonSchemaFormat, TextFormat
from sidecar.responses.tools import FunctionTool, NamedFunction, ToolChoice


def new_response(request: ResponsesRequest, response_id: str, created_at: int) -> Json:
    """The node surface's response object for ``request``, in progress; ``created_at`` is in seconds since the epoch."""
    return {
        "id": response_id,
        "object": "response",
        "created_at": created_at,
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "model": request.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls,
        "previous_response_id": None,
        "reasoning": {"effort": request.reasoning.effort, "summary": request.reasoning.summary},
        "store": False,
        "temperature": request.temperature,
        "text": {"format": _format(request.text.format), "verbosity": request.text.verbosity or "medium"},
        "tool_choice": _tool_choice(request.tool_choice),
        "tools": [_tool(tool) for tool in request.tools],
        "top_p": request.top_p,
        "truncation": "disabled",
        "metadata": request.metadata,
        "usage": None,
    }


def _tool(tool: FunctionTool) -> Json:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        # Unless it is asked for, nothing constrains the arguments.
        "strict": bool(tool.strict),
    }


def _tool_choice(choice: ToolChoice) -> str | Json:
    return {"type": "function", "name": choice.name} if isinstance(choice, NamedFunction) else choice


def _format(text_format: TextFormat) -> Json:
    if not isinstance(text_format, JsonSchemaFormat):
        return {"type": text_format.type}
    return {
        "type": "json_schema",
        "name": text_format.name,
        "description": text_format.description,
        "schema": text_format.json_schema,
        "strict": bool(text_format.strict),
    }
