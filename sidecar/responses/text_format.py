"""``text``: the form of the answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from sidecar.responses.json_schema import JsonSchema
from sidecar.responses.request_model import ClosedModel, RequestModel, type_tag


class PlainText(RequestModel):
    """Free text."""

    type: Literal["text"]


class JsonObject(RequestModel):
    """Any JSON object."""

    type: Literal["json_object"]


class JsonSchemaFormat(RequestModel):
    """JSON that matches a schema."""

    type: Literal["json_schema"]
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$", max_length=64)]
    # A member named "schema" would hide one of pydantic's methods.
    json_schema: JsonSchema = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


def format_type(value: Any) -> str | None:
    """The tag of a text format."""
    return type_tag(value)


TextFormat = Annotated[
    Annotated[PlainText, Tag("<text>")]
    | Annotated[JsonObject, Tag("<json_object>")]
    | Annotated[JsonSchemaFormat, Tag("<json_schema>")],
    Discriminator(format_type),
]


class TextSettings(ClosedModel):
    """The request's ``text``."""

    format: TextFormat = PlainText(type="text")
    verbosity: Literal["low", "medium", "high"] | None = None
