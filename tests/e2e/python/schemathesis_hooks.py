"""What the OpenAPI document cannot say, said to schemathesis: which model there is, and that calls have outputs.

Loaded by schemathesis in its own environment; without it nearly all requests would be refused for the same reasons.
"""

from __future__ import annotations

from typing import Any

import schemathesis

MODEL = "scripted"


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Ask for the served model, and pair every call with an output."""
    if not isinstance(body, dict):
        return body
    body = {**body}
    if isinstance(body.get("model"), str):
        body["model"] = MODEL
    if isinstance(body.get("input"), list):
        body["input"] = _paired(body["input"])
    if _demands_json(body) or _demands_call(body):
        # The scripted model heeds no guide, and a whole answer that is not what was demanded is a 503.
        body["stream"] = True
    return body


def _demands_json(body: dict[str, Any]) -> bool:
    text = body.get("text")
    answer_format = text.get("format") if isinstance(text, dict) else None
    return isinstance(answer_format, dict) and answer_format.get("type") in ("json_object", "json_schema")


def _demands_call(body: dict[str, Any]) -> bool:
    choice = body.get("tool_choice")
    return choice == "required" or isinstance(choice, dict)


def _paired(items: list[Any]) -> list[Any]:
    paired: list[Any] = []
    for index, item in enumerate(items):
        kind = item.get("type") if isinstance(item, dict) else None
        if kind not in ("function_call", "function_call_output"):
            paired.append(item)
            continue
        call_id = f"call_{index}"
        call = {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": call_id, "output": "ok"}
        named = {**item, "call_id": call_id}
        paired += [named, output] if kind == "function_call" else [call, named]
    return paired
