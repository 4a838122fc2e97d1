"""Tools and the choice between them; a surface takes unions of its own, of these or of others."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from typing_extensions import TypeVar

from sidecar.responses.json_schema import JsonSchema
from sidecar.responses.json_text import Json
from sidecar.responses.open_calls import CallType
from sidecar.responses.request_model import RequestModel, fault, type_tag

MAX_TOOLS = 4_096
"""Tools no model setting may exceed; it bounds the time that reading one request takes."""

ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$", max_length=128)]


class FunctionTool(RequestModel):
    """A function the model may call. Without ``parameters`` it takes no arguments."""

    called_as: ClassVar[CallType] = "function_call"
    """The type of the item that calls of it are."""
    named: ClassVar[bool] = True
    """Whether the client has given it its name."""

    type: Literal["function"]
    name: ToolName
    description: str | None = None
    parameters: JsonSchema | None = None
    strict: bool | None = None
    allowed_callers: list[str] | None = None
    defer_loading: bool | None = None
    output_schema: JsonSchema | None = None

    @model_validator(mode="before")
    @classmethod
    def _chat_form(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("function"), dict) and "name" not in value:
            message = (
                "Missing required parameter: '{path}'; put the members of 'function' beside 'type', not inside it."
            )
            raise fault(message, member="name")
        return value

    def echo(self) -> Json:
        """The tool as a response writes it back, with all members."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            # Unless it is asked for, nothing constrains the arguments.
            "strict": bool(self.strict),
        }


def tool_type(value: Any) -> str | None:
    """The tag of a tool."""
    return type_tag(value)


Tool = Annotated[Annotated[FunctionTool, Tag("<function>")], Discriminator(tool_type)]
ToolT = TypeVar("ToolT", default=Tool)


class NamedFunction(RequestModel):
    """The one function the model has to call."""

    type: Literal["function"]
    name: str

    def echo(self) -> Json:
        """The choice as a response writes it back."""
        return {"type": self.type, "name": self.name}


ToolChoiceMode = Literal["none", "auto", "required"]


def tool_choice_type(value: Any) -> str | None:
    """The tag of a tool choice: a mode, or an object told apart by its type."""
    return "<mode>" if isinstance(value, str) else type_tag(value)


ToolChoice = Annotated[
    Annotated[ToolChoiceMode, Tag("<mode>")] | Annotated[NamedFunction, Tag("<function>")],
    Discriminator(tool_choice_type),
]
ToolChoiceT = TypeVar("ToolChoiceT", default=ToolChoice)
