"""The items, parts and tools that are taken for models of Triton, on every surface: nothing of them is looked up."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag, WithJsonSchema, model_validator

from sidecar.responses import parts, tools
from sidecar.responses.items import (
    AssistantMessage,
    FunctionCall,
    FunctionCallOutput,
    InputMessage,
    ReasoningItem,
    item_type,
)
from sidecar.responses.parts import AssistantPart, InputText, OutputText, part_type
from sidecar.responses.request_model import fault


class InputImage(parts.InputImage):
    """An image given to the model: ``image_url`` is a ``data:`` URL or an http(s) URL."""

    file_id: None = None

    @model_validator(mode="before")
    @classmethod
    def _not_a_file(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("file_id") is not None:
            message = "'{path}' is not supported: files are not stored; send the image in 'image_url'."
            raise fault(message, member="file_id", code="unsupported_parameter")
        return value


class FunctionTool(tools.FunctionTool):
    """A function the model may call. Without ``parameters`` it takes no arguments."""

    defer_loading: Annotated[bool | None, WithJsonSchema({"enum": [False, None]})] = None

    @model_validator(mode="after")
    def _loaded_at_once(self) -> FunctionTool:
        if self.defer_loading:
            message = "'{path}' is not supported: tools cannot be loaded later."
            raise fault(message, member="defer_loading", code="unsupported_parameter")
        return self


InputPart = Annotated[
    Annotated[InputText, Tag("<input_text>")] | Annotated[InputImage, Tag("<input_image>")], Discriminator(part_type)
]

ToolOutputPart = Annotated[
    Annotated[InputText, Tag("<input_text>")]
    | Annotated[InputImage, Tag("<input_image>")]
    | Annotated[OutputText, Tag("<output_text>")],
    Discriminator(part_type),
]

Item = Annotated[
    Annotated[InputMessage[InputPart], Tag("<message>")]
    | Annotated[AssistantMessage[AssistantPart], Tag("<assistant message>")]
    | Annotated[FunctionCall, Tag("<function_call>")]
    | Annotated[FunctionCallOutput[ToolOutputPart], Tag("<function_call_output>")]
    | Annotated[ReasoningItem, Tag("<reasoning>")],
    Discriminator(item_type),
]
