"""One form of request, what it must be answered with, and the parts that several clients share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# One grey pixel.
IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
ENCRYPTED_REASONING = ["reasoning.encrypted_content"]


@dataclass(frozen=True)
class Form:
    """A body without its model. ``refused`` is the code and param of its 400; without it the answer completes."""

    body: Json
    refused: tuple[str, str] | None = None


def picture(param: str) -> tuple[str, str]:
    """The refusal of the image at ``param``: the stack's models read text only."""
    return ("invalid_request", param)


def says(answer: Any) -> str:
    """A prompt that makes the scripted model answer with this text, or with this object as JSON."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return f"script:{json.dumps([text])}"


def calls(name: str, arguments: Json) -> str:
    """A prompt that makes the scripted model call a function."""
    return says(f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>")


def forced(name: str, arguments: Json) -> str:
    """A user's text that makes the scripted model write a call as a guide would have it."""
    return says(json.dumps({"name": name, "arguments": arguments}))


def schema(properties: Json, **more: Any) -> Json:
    """A JSON Schema of OpenAI's strict subset: every property required, no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
        **more,
    }


def function_call(call_id: str, name: str, arguments: str, **more: Any) -> Json:
    """A call as the response had it."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def call_output(call_id: str, output: Any, **more: Any) -> Json:
    """What the function gave back."""
    return {"type": "function_call_output", "call_id": call_id, "output": output, **more}


def reasoning(number: int, **more: Any) -> Json:
    """A reasoning item as the response had it."""
    content = [{"type": "reasoning_text", "text": "They ask about the weather."}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "content": content, **more}


def answer(text: str, **more: Any) -> Json:
    """An assistant's message as the response had it."""
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content, **more}
