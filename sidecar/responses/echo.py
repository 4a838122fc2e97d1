"""What a response object says of its request: the choice of tools and the format, as OpenAI writes them back."""

from __future__ import annotations

from sidecar.responses.json_text import Json
from sidecar.responses.text_format import JsonSchemaFormat, TextFormat
from sidecar.responses.tools import NamedFunction, ToolChoice


def echo_tool_choice(choice: ToolChoice) -> str | Json:
    """A mode, or the tool that was named."""
    return choice.echo() if isinstance(choice, NamedFunction) else choice


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
