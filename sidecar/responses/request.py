"""A create request, as every surface reads it. Which parameters are taken, and which refused, is a surface's policy."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, Self

from pydantic import AfterValidator, BeforeValidator, FailFast, Field, WithJsonSchema, model_validator

from sidecar.responses.items import MAX_ITEMS, ItemT, text_as_message
from sidecar.responses.request_model import ClosedModel, OrString, RequestModel, fault
from sidecar.responses.text_format import TextSettings
from sidecar.responses.tools import MAX_TOOLS, FunctionTool, NamedFunction, ToolChoiceT, ToolT

Include = Literal[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
]

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
SummaryStyle = Literal["auto", "concise", "detailed"]


class ReasoningSettings(ClosedModel):
    """The request's ``reasoning``."""

    effort: ReasoningEffort | None = None
    summary: SummaryStyle | None = None
    generate_summary: SummaryStyle | None = None
    context: str | None = None
    mode: str | None = None


class StreamOptions(ClosedModel):
    """The request's ``stream_options``."""

    include_obfuscation: bool | None = None


def _few_pairs(metadata: Any) -> Any:
    if isinstance(metadata, dict) and len(metadata) > 16:
        raise fault(f"'metadata' holds {len(metadata)} pairs; at most 16 are accepted.")
    return metadata


def _short_pairs(metadata: dict[str, str]) -> dict[str, str]:
    if any(len(key) > 64 for key in metadata):
        raise fault("A key of 'metadata' is longer than 64 characters.")
    if any(len(value) > 512 for value in metadata.values()):
        raise fault("A value of 'metadata' is longer than 512 characters.")
    return metadata


Metadata = Annotated[
    dict[str, str],
    BeforeValidator(_few_pairs),
    AfterValidator(_short_pairs),
    WithJsonSchema(
        {
            "type": "object",
            "maxProperties": 16,
            "propertyNames": {"maxLength": 64},
            "additionalProperties": {"type": "string", "maxLength": 512},
        }
    ),
]
"""At most 16 pairs; keys of at most 64 characters, values of at most 512."""


class ResponsesRequest(RequestModel, Generic[ItemT, ToolT, ToolChoiceT]):
    """The parameters of ``POST …/responses``; ``None`` and an empty list stand for what the client left out.

    It is generic over the items, tools and tool choices that a surface takes. The order of the members is the order in
    which faults are reported. Source: OpenAI's Responses API.
    """

    model: Annotated[str, Field(min_length=1)]
    input: Annotated[
        list[ItemT], FailFast(), Field(min_length=1, max_length=MAX_ITEMS), OrString(text_as_message, min_length=1)
    ]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    prompt: Any = None
    tools: Annotated[list[ToolT], FailFast(), Field(max_length=MAX_TOOLS)] = Field(default_factory=list)
    tool_choice: ToolChoiceT = "auto"  # type: ignore[assignment]
    parallel_tool_calls: bool = True
    metadata: Metadata = Field(default_factory=dict)
    text: TextSettings = TextSettings()
    reasoning: ReasoningSettings = ReasoningSettings()
    include: Annotated[list[Include], FailFast()] = Field(default_factory=list)
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    top_logprobs: int | None = None
    max_tool_calls: int | None = None
    truncation: Literal["auto", "disabled"] = "disabled"
    background: bool = False
    stream: bool = False
    stream_options: StreamOptions | None = None
    store: bool | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None

    @model_validator(mode="after")
    def _choice_names_a_tool(self) -> Self:
        names = set[str]()
        for index, tool in enumerate(self.tools):
            if not isinstance(tool, FunctionTool):
                continue
            if tool.name in names:
                verb, place = ("is", ".name") if tool.named else ("has", "")
                message = f"'{{path}}' {verb} the name of an earlier tool; each may be there once."
                raise fault(message, member=f"tools[{index}]{place}")
            names.add(tool.name)
        if self.tool_choice == "required" and not self.tools:
            raise fault("'tool_choice' is 'required', but there are no tools.", member="tool_choice")
        if isinstance(self.tool_choice, NamedFunction) and self.tool_choice.name not in names:
            noun = "function" if self.tool_choice.type == "function" else "tool"
            raise fault(f"'tool_choice' names a {noun} that is not in 'tools'.", member="tool_choice")
        return self

    @property
    def reasons(self) -> bool:
        """Whether the client asked for a reasoning phase: an effort of ``low`` or above."""
        return self.reasoning.effort not in (None, "none", "minimal")
