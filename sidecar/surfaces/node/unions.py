"""The tools that the node takes, and its words for items that would need something stored."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Tag

from sidecar.responses.request import ResponsesRequest
from sidecar.responses.tools import ToolChoice, tool_type
from sidecar.responses.validation import TypeWords
from sidecar.surfaces.unions import FunctionTool, Item

Tool = Annotated[Annotated[FunctionTool, Tag("<function>")], Discriminator(tool_type)]

NodeRequest = ResponsesRequest[Item, Tool, ToolChoice]

TYPE_WORDS: TypeWords = {
    "item": {
        "item_reference": "'{path}' refers to a stored item, and nothing is stored on this node; "
        "send items whole in 'input' (store: false).",
    },
}
