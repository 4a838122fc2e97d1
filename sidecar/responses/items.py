"""Input items: the conversation as a client sends it, turn by turn."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, FailFast, Field, Tag

from sidecar.responses.parts import AssistantContent, InputContent, OutputContent, ReasoningText
from sidecar.responses.request_model import RequestModel, fault, type_tag

MAX_ITEMS = 16_384
"""Items no model setting may exceed; it bounds the time that reading one request takes."""


class InputMessage(RequestModel):
    """A message to the assistant."""

    type: Literal["message"] | None = None
    role: Literal["user", "system", "developer"]
    content: InputContent


class AssistantMessage(RequestModel):
    """A message the assistant wrote earlier."""

    type: Literal["message"] | None = None
    role: Literal["assistant"]
    content: AssistantContent


class FunctionCall(RequestModel):
    """A call the assistant made earlier. ``arguments`` is its text, which a model may have left malformed."""

    type: Literal["function_call"]
    call_id: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)]
    arguments: str


class FunctionCallOutput(RequestModel):
    """What a called function returned."""

    type: Literal["function_call_output"]
    call_id: Annotated[str, Field(min_length=1)]
    output: OutputContent


class ReasoningItem(RequestModel):
    """An assistant's earlier reasoning. Nothing in it is required: clients echo empty and encrypted ones."""

    type: Literal["reasoning"]
    summary: Annotated[list[ReasoningText], FailFast()] = Field(default_factory=list)
    content: Annotated[list[ReasoningText], FailFast()] = Field(default_factory=list)

    @property
    def text(self) -> str:
        """The readable reasoning: the content's, else the summary's, parts joined by blank lines; or empty."""
        return "\n\n".join(part.text for part in self.content or self.summary if part.text)


def item_type(value: Any) -> str | None:
    """The tag of an item. An item without ``type`` is a message; the role tells an assistant's from the others."""
    if not isinstance(value, dict):
        return type_tag(value)
    kind = value.get("type")
    if kind is None or kind == "message":
        return "<assistant message>" if value.get("role") == "assistant" else "<message>"
    return type_tag(value)


Item = Annotated[
    Annotated[InputMessage, Tag("<message>")]
    | Annotated[AssistantMessage, Tag("<assistant message>")]
    | Annotated[FunctionCall, Tag("<function_call>")]
    | Annotated[FunctionCallOutput, Tag("<function_call_output>")]
    | Annotated[ReasoningItem, Tag("<reasoning>")],
    Discriminator(item_type),
]


def _text_as_message(value: Any) -> Any:
    if value in ("", []):
        raise fault("'input' must be a non-empty string or a list of at least one item.")
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


Input = Annotated[
    list[Item],
    FailFast(),
    Field(max_length=MAX_ITEMS),
    BeforeValidator(
        _text_as_message,
        json_schema_input_type=Annotated[str, Field(min_length=1)] | Annotated[list[Item], Field(min_length=1)],
    ),
]
"""A string, which is one user message, or a list of items; always a list once read."""
