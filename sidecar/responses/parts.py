"""Content parts: what a message or a tool's output is made of.

The unions are of all parts that have a model here. A surface may take others: what holds parts is generic over them.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeVar

from sidecar.responses.request_model import ARRAY_OR_NULL, RequestModel, type_tag

_URL_SCHEMES = "^([Dd][Aa][Tt][Aa]:|[Hh][Tt][Tt][Pp][Ss]?://)"


class InputText(RequestModel):
    """Text given to the model."""

    type: Literal["input_text"]
    text: str


class InputImage(RequestModel):
    """An image given to the model: ``image_url`` is a ``data:`` URL or an http(s) URL."""

    ignored_members: ClassVar = {"detail": {"enum": ["low", "high", "auto", "original", None]}}

    type: Literal["input_image"]
    image_url: Annotated[
        str,
        # JSON Schema's regular expressions have no flags.
        Field(pattern=r"^(?i:data:|https?://)", json_schema_extra={"pattern": _URL_SCHEMES}),
    ]


class OutputText(RequestModel):
    """Text an assistant wrote earlier."""

    ignored_members: ClassVar = {"annotations": ARRAY_OR_NULL, "logprobs": ARRAY_OR_NULL}

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
AssistantPart = Annotated[
    Annotated[OutputText, Tag("<output_text>")] | Annotated[Refusal, Tag("<refusal>")], Discriminator(part_type)
]

ToolOutputPart = Annotated[
    Annotated[InputText, Tag("<input_text>")]
    | Annotated[InputImage, Tag("<input_image>")]
    | Annotated[OutputText, Tag("<output_text>")],
    Discriminator(part_type),
]
"""A part of what a function returned; clients that pass on another model's answer send its text as it came."""

InputPartT = TypeVar("InputPartT", default=InputPart)
AssistantPartT = TypeVar("AssistantPartT", default=AssistantPart)
ToolOutputPartT = TypeVar("ToolOutputPartT", default=ToolOutputPart)

PART_TYPES = ("input_text", "input_image", "output_text", "refusal")
"""The types of the parts above; each belongs into some messages and not into others."""
