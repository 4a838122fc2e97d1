"""The request of the bureau surface: its tools, its extension ``ib``, and its words for what it refuses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, FailFast, Field, Tag

from sidecar.responses.items import (
    AssistantMessage,
    CompactionItem,
    CompactionTrigger,
    FunctionCall,
    FunctionCallOutput,
    InputMessage,
    ReasoningItem,
    item_type,
)
from sidecar.responses.parts import AssistantPart
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.request_model import RequestModel
from sidecar.responses.tools import NamedFunction, ToolChoiceMode, tool_choice_type, tool_type
from sidecar.responses.validation import TypeWords
from sidecar.surfaces.bureau.client_tools import (
    ApplyPatchCall,
    ApplyPatchCallOutput,
    ApplyPatchTool,
    LocalShellCall,
    LocalShellCallOutput,
    LocalShellTool,
    NamedApplyPatch,
)
from sidecar.surfaces.bureau.custom import CustomTool, CustomToolCall, CustomToolCallOutput, NamedCustomTool
from sidecar.surfaces.unions import FunctionTool, InputPart, ToolOutputPart

Tool = Annotated[
    Annotated[FunctionTool, Tag("<function>")]
    | Annotated[CustomTool, Tag("<custom>")]
    | Annotated[LocalShellTool, Tag("<local_shell>")]
    | Annotated[ApplyPatchTool, Tag("<apply_patch>")],
    Discriminator(tool_type),
]

ToolChoice = Annotated[
    Annotated[ToolChoiceMode, Tag("<mode>")]
    | Annotated[NamedFunction, Tag("<function>")]
    | Annotated[NamedCustomTool, Tag("<custom>")]
    | Annotated[NamedApplyPatch, Tag("<apply_patch>")],
    Discriminator(tool_choice_type),
]

Item = Annotated[
    Annotated[InputMessage[InputPart], Tag("<message>")]
    | Annotated[AssistantMessage[AssistantPart], Tag("<assistant message>")]
    | Annotated[FunctionCall, Tag("<function_call>")]
    | Annotated[FunctionCallOutput[ToolOutputPart], Tag("<function_call_output>")]
    | Annotated[CustomToolCall, Tag("<custom_tool_call>")]
    | Annotated[CustomToolCallOutput, Tag("<custom_tool_call_output>")]
    | Annotated[LocalShellCall, Tag("<local_shell_call>")]
    | Annotated[LocalShellCallOutput, Tag("<local_shell_call_output>")]
    | Annotated[ApplyPatchCall, Tag("<apply_patch_call>")]
    | Annotated[ApplyPatchCallOutput, Tag("<apply_patch_call_output>")]
    | Annotated[ReasoningItem, Tag("<reasoning>")]
    | Annotated[CompactionItem, Tag("<compaction>")]
    | Annotated[CompactionTrigger, Tag("<compaction_trigger>")],
    Discriminator(item_type),
]


class Extension(RequestModel):
    """What is the bureau's own. Members that belong to mixed-model sessions are accepted without effect."""

    tags: Annotated[list[str], FailFast(), Field(max_length=64)] = Field(default_factory=list)
    session: str | None = None


class BureauRequest(ResponsesRequest[Item, Tool, ToolChoice]):
    """The parameters of ``POST /v1/responses``."""

    ib: Extension | None = None


_COSTLY = (
    *("web_search_preview", "web_search_preview_2025_03_11", "file_search", "code_interpreter", "computer"),
    *("computer_use_preview", "image_generation", "mcp"),
)
_WEB_SEARCH = ("web_search", "web_search_2025_08_26")

TYPE_WORDS: TypeWords = {
    "item": {"item_reference": "'{path}' refers to an item that is not kept here; send items whole in 'input'."},
    "tool": {
        **dict.fromkeys(_COSTLY, "'{path}' is a hosted tool, which is not supported: its cost cannot be reserved."),
        **dict.fromkeys(_WEB_SEARCH, "'{path}': this model has no route that is certified for web_search."),
    },
}
