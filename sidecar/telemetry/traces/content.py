"""What requests and answers say, for those who have asked to see it in their traces.

In the form of OpenTelemetry's semantic conventions: JSON, messages of a role and parts. Each attribute holds at most
:data:`MOST_CHARACTERS` of text, the newest messages; what is beyond is cut off.
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sidecar.exchange.commands import Command, SendBody
from sidecar.responses.reply import Reply

MOST_CHARACTERS = 32_768
"""Of the text in one attribute."""

_MOST_BYTES = 4 * 1024 * 1024
"""A larger body is not read again: that would hold up the event loop."""
_CALLS = ("function_call", "custom_tool_call", "tool_search_call", "apply_patch_call", "shell_call")


def of_request(body: bytes) -> dict[str, str]:
    """The instructions and the input of a request."""
    request = _read(body)
    given = request.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    told = {"gen_ai.input.messages": _messages(items if isinstance(items, list) else [])}
    if isinstance(instructions := request.get("instructions"), str):
        told["gen_ai.system_instructions"] = [_text(instructions[:MOST_CHARACTERS])]
    return {name: json.dumps(value, ensure_ascii=False) for name, value in told.items()}


def of_answer(commands: Sequence[Command]) -> dict[str, str]:
    """The output of the response that the last ``commands`` send; nothing where they send none."""
    for command in reversed(commands):
        if isinstance(command, Reply):
            response: Any = _read(command.body)
        elif isinstance(command, SendBody) and command.startswith(b"{"):
            response = _read(command)
        elif isinstance(command, SendBody):
            # The last event of a stream.
            response = _read(b"{" + command.rpartition(b"\ndata: {")[2]).get("response")
        else:
            continue
        output = response.get("output") if isinstance(response, dict) else None
        if isinstance(output, list):
            return {"gen_ai.output.messages": json.dumps(_messages(output), ensure_ascii=False)}
    return {}


def _read(body: bytes) -> dict[str, Any]:
    try:
        read = json.loads(body) if len(body) <= _MOST_BYTES else None
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _messages(items: Sequence[Any]) -> list[dict[str, Any]]:
    """The newest of ``items`` as messages, oldest first."""
    messages: list[dict[str, Any]] = []
    left = MOST_CHARACTERS
    for item in reversed(items):
        if left <= 0:
            break
        if not isinstance(item, dict):
            continue
        parts = []
        for part in _parts(item):
            key = next((key for key in ("content", "arguments", "response") if isinstance(part.get(key), str)), None)
            if key is not None:
                part[key] = part[key][: max(left, 0)]
                left -= len(part[key])
            parts.append(part)
        messages.append({"role": _role(item), "parts": parts})
    return messages[::-1]


def _role(item: dict[str, Any]) -> str:
    kind = item.get("type", "message")
    if kind == "message":
        return str(item.get("role", "assistant"))
    return "tool" if str(kind).endswith("_output") else "assistant"


def _parts(item: dict[str, Any]) -> Iterable[dict[str, Any]]:
    kind = item.get("type", "message")
    if kind == "message":
        content = item.get("content")
        for part in [{"text": content}] if isinstance(content, str) else content if isinstance(content, list) else ():
            words = next((part[key] for key in ("text", "refusal") if key in part), None)
            yield _text(words) if isinstance(words, str) else {"type": str(part.get("type"))}
    elif kind == "reasoning":
        for part in item.get("content") or ():
            yield {"type": "reasoning", "content": str(part.get("text", ""))}
    elif kind in _CALLS:
        arguments = item.get("arguments", item.get("input", ""))
        yield {"type": "tool_call", "id": item.get("call_id"), "name": item.get("name"), "arguments": str(arguments)}
    elif str(kind).endswith("_output"):
        yield {"type": "tool_call_response", "id": item.get("call_id"), "response": _output(item.get("output"))}
    else:
        yield {"type": str(kind)}


def _output(output: Any) -> str:
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def _text(words: str) -> dict[str, str]:
    return {"type": "text", "content": words}
