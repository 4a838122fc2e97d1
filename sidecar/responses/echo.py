"""What a response object says of its request: tools, their choice and the format, as OpenAI writes them back."""

from __future__ import annotations

from sidecar.responses.json_text import Json
from sidecar.responses.text_format import JsonSchemaFormat, TextFormat
from sidecar.responses.tools import FunctionTool, NamedFunction, ToolChoice


def echo_tool(tool: FunctionTool) -> Json:
    """A function tool, with all five members."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        # Unless it is asked for, nothing constrains the arguments.
        "strict": bool(tool.strict),
    }


def echo_tool_choice(choice: ToolChoice) -> str | Json:
    """A mode, or the function that was named."""
    return {"type": "function", "name": choice.name} if isinstance(choice, NamedFunction) else choice


def echo_format(text_format: TextFormat) -> Json:
    """The format of the answer."""
    if not isinstance(text_format, JsonSchemaFormat):
        return {"type": text_format.type}
    return {
        "type": "json_schema",
        "name": text_format.name,
        "description": text_format.description,
        "schema": text_format.json_schema,
        "strict": bool(text_format.strict),
    }
