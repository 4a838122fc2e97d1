"""Content parts: what a message or a tool's output is made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, FailFast, Field, Tag, model_validator

from sidecar.responses.request_model import RequestModel, fault, text_as_parts, type_tag

_URL_SCHEMES = "^([Dd][Aa][Tt][Aa]:|[Hh][Tt][Tt][Pp][Ss]?://)"


class InputText(RequestModel):
    """Text given to the model."""

    type: Literal["input_text"]
    text: str


class InputImage(RequestModel):
    """An image given to the model: ``image_url`` is a ``data:`` URL or an http(s) URL."""

    type: Literal["input_image"]
    image_url: Annotated[
        str,
        # JSON Schema's regular expressions have no flags.
        Field(pattern=r"^(?i:data:|https?://)", json_schema_extra={"pattern": _URL_SCHEMES}),
    ]
    file_id: None = None

    @model_validator(mode="before")
    @classmethod
    def _not_a_file(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("file_id") is not None:
            raise fault(
                "Files are not stored; send the image in 'image_url'.", member="file_id", code="unsupported_parameter"
            )
        return value


class OutputText(RequestModel):
    """Text an assistant wrote earlier."""

    type: Literal["output_text"]
    text: str


class Refusal(RequestModel):
    """An assistant's earlier refusal, in its own words."""

    type: Literal["refusal"]
    refusal: str


class ReasoningText(RequestModel):
    """Readable reasoning of an assistant."""

    type: Literal["reasoning_text", "summary_text"]
    text: str


def part_type(value: Any) -> str | None:
    """The tag of a content part."""
    return type_tag(value)


InputPart = Annotated[
    Annotated[InputText, Tag("<input_text>")] | Annotated[InputImage, Tag("<input_image>")], Discriminator(part_type)
]
OutputPart = Annotated[
    Annotated[InputText, Tag("<input_text>")]
    | Annotated[InputImage, Tag("<input_image>")]
    | Annotated[OutputText, Tag("<output_text>")],
    Discriminator(part_type),
]
AssistantPart = Annotated[
    Annotated[OutputText, Tag("<output_text>")] | Annotated[Refusal, Tag("<refusal>")], Discriminator(part_type)
]

InputContent = Annotated[
    list[InputPart],
    FailFast(),
    BeforeValidator(text_as_parts("input_text"), json_schema_input_type=str | list[InputPart]),
]
"""A string, or a list of parts; always a list once read."""

OutputContent = Annotated[
    list[OutputPart],
    FailFast(),
    BeforeValidator(text_as_parts("input_text"), json_schema_input_type=str | list[OutputPart]),
]
"""What a function returned: a string, or a list of parts; always a list once read."""

AssistantContent = Annotated[
    list[AssistantPart],
    FailFast(),
    BeforeValidator(text_as_parts("output_text"), json_schema_input_type=str | list[AssistantPart]),
]
"""A string, or a list of parts; always a list once read."""
