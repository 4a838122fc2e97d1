"""Custom tools, as models of Triton can have them: a function with one argument, which is the tool's input."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import model_validator
from pydantic.json_schema import SkipJsonSchema

from sidecar.responses import items
from sidecar.responses.custom_input import MEMBER, arguments_of
from sidecar.responses.json_text import Json
from sidecar.responses.request_model import RequestModel, fault
from sidecar.responses.tools import NamedFunction
from sidecar.surfaces.unions import FunctionTool, ToolOutputPart

_PARAMETERS: Json = {
    "type": "object",
    "properties": {MEMBER: {"type": "string", "description": "The whole input, as it is."}},
    "required": [MEMBER],
    "additionalProperties": False,
}


class CustomFormat(RequestModel):
    """The form of the input: any text."""

    type: Literal["text"]


class CustomTool(FunctionTool):
    """A tool whose input is a text of any form."""

    called_as: ClassVar = "custom_tool_call"

    type: Literal["custom"]  # type: ignore[assignment]
    format: CustomFormat | None = None
    parameters: SkipJsonSchema[Any] = None
    strict: SkipJsonSchema[Any] = None
    output_schema: SkipJsonSchema[Any] = None

    @model_validator(mode="before")
    @classmethod
    def _as_function(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        form = value.get("format")
        if isinstance(form, dict) and form.get("type") == "grammar":
            message = "'{path}' is not supported: this model cannot be held to a grammar."
            raise fault(message, member="format", code="unsupported_parameter")
        return {**value, "parameters": _PARAMETERS, "strict": None, "output_schema": None}

    def echo(self) -> Json:
        """The custom tool that it is."""
        return {"type": "custom", "name": self.name, "description": self.description, "format": {"type": "text"}}


class NamedCustomTool(NamedFunction):
    """The one custom tool the model has to call."""

    type: Literal["custom"]  # type: ignore[assignment]


class CustomToolCall(items.FunctionCall):
    """A call of a custom tool that the assistant made earlier."""

    type: Literal["custom_tool_call"]  # type: ignore[assignment]
    input: str
    arguments: SkipJsonSchema[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _as_function_call(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        text = value.get("input")
        return {**value, "arguments": arguments_of(text) if isinstance(text, str) else ""}


class CustomToolCallOutput(items.FunctionCallOutput[ToolOutputPart]):
    """What a called custom tool returned."""

    type: Literal["custom_tool_call_output"]  # type: ignore[assignment]
