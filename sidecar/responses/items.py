"""Input items: the conversation as a client sends it, turn by turn.

The union is of all items that have a model here. A surface takes a union of its own, of these or of stricter ones.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Generic, Literal

from pydantic import Discriminator, FailFast, Field, Tag, WithJsonSchema
from typing_extensions import TypeVar

from sidecar.responses.parts import AssistantPartT, InputPartT, ReasoningText, ToolOutputPartT
from sidecar.responses.request_model import (
    BOOLEAN_OR_NULL,
    OBJECT_OR_NULL,
    STRING_OR_NULL,
    RequestModel,
    fault,
    text_as_parts,
    type_tag,
)

MAX_ITEMS = 16_384
"""Items no model setting may exceed; it bounds the time that reading one request takes."""


_OF_ANY_ITEM = {"id": STRING_OR_NULL, "status": STRING_OR_NULL}
_OF_ANY_CALL = {"namespace": STRING_OR_NULL, "caller": OBJECT_OR_NULL}


class InputMessage(RequestModel, Generic[InputPartT]):
    """A message to the assistant."""

    ignored_members: ClassVar = _OF_ANY_ITEM | {"phase": STRING_OR_NULL}

    type: Literal["message"] | None = None
    role: Literal["user", "system", "developer"]
    content: Annotated[list[InputPartT], FailFast(), text_as_parts("input_text")]


class AssistantMessage(RequestModel, Generic[AssistantPartT]):
    """A message the assistant wrote earlier."""

    ignored_members: ClassVar = _OF_ANY_ITEM | {"phase": STRING_OR_NULL}

    type: Literal["message"] | None = None
    role: Literal["assistant"]
    content: Annotated[list[AssistantPartT], FailFast(), text_as_parts("output_text")]


class FunctionCall(RequestModel):
    """A call the assistant made earlier. ``arguments`` is its text, which a model may have left malformed."""

    ignored_members: ClassVar = _OF_ANY_ITEM | _OF_ANY_CALL | {"async": BOOLEAN_OR_NULL}

    type: Literal["function_call"]
    call_id: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)]
    arguments: str


class FunctionCallOutput(RequestModel, Generic[ToolOutputPartT]):
    """What a called function returned."""

    ignored_members: ClassVar = _OF_ANY_ITEM | _OF_ANY_CALL | {"name": STRING_OR_NULL}

    type: Literal["function_call_output"]
    call_id: Annotated[str, Field(min_length=1)]
    output: Annotated[list[ToolOutputPartT], FailFast(), text_as_parts("input_text")]


class ReasoningItem(RequestModel):
    """An assistant's earlier reasoning. Nothing in it is required: clients echo empty and encrypted ones."""

    ignored_members: ClassVar = _OF_ANY_ITEM

    type: Literal["reasoning"]
    summary: Annotated[list[ReasoningText], FailFast()] = Field(default_factory=list)
    content: Annotated[list[ReasoningText], FailFast()] = Field(default_factory=list)
    # Another server's is no fault, whatever it is.
    encrypted_content: Annotated[Any, WithJsonSchema(STRING_OR_NULL)] = None

    @property
    def text(self) -> str:
        """The readable reasoning: the content's, else the summary's, parts joined by blank lines; or empty."""
        return "\n\n".join(part.text for part in self.content or self.summary if part.text)


class CompactionItem(RequestModel):
    """An earlier conversation as its summary, sealed for the team."""

    ignored_members: ClassVar = _OF_ANY_ITEM

    type: Literal["compaction"]
    encrypted_content: Annotated[str, Field(min_length=1)]


class CompactionTrigger(RequestModel):
    """Asks, as the last item, for a compaction of all before it in place of an answer."""

    ignored_members: ClassVar = _OF_ANY_ITEM

    type: Literal["compaction_trigger"]


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


ItemT = TypeVar("ItemT", default=Item)


def text_as_message(value: Any) -> Any:
    """The whole input: a plain string is one user message; raises a fault where there is nothing."""
    if value in ("", []):
        raise fault("'input' must be a non-empty string or a list of at least one item.")
    return input_list(value)


def input_list(value: Any) -> Any:
    """The whole input as a list, where it is a string."""
    return [{"role": "user", "content": value}] if isinstance(value, str) else value
