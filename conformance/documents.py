"""Checks of whole documents: the response object, its items and usage, error bodies and error events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from conformance.event_types import ITEM_MEMBERS, OTHER_ITEM_MEMBERS, PART_MEMBERS, PARTS_OF
from conformance.rules import Violation
from conformance.shapes import ARRAY, COUNT, FLAG, NAME, STRING, Json, misfits

RESPONSE_MEMBERS = {"id": NAME, "object": NAME, "created_at": COUNT, "model": NAME, "status": NAME, "output": ARRAY}
SETTINGS = {"tools": ARRAY, "parallel_tool_calls": FLAG}
"""Members that tell how the answer was made, and are never null."""
REQUIRED = (
    *("error", "incomplete_details", "instructions", "metadata", "parallel_tool_calls", "temperature", "tool_choice"),
    *("tools", "top_p"),
)
"""The members that OpenAI's schema requires beyond :data:`RESPONSE_MEMBERS`: clients made from it fail without them."""
USAGE_MEMBERS = {"input_tokens": COUNT, "output_tokens": COUNT, "total_tokens": COUNT}
ERROR_MEMBERS = {"message": STRING, "type": NAME, "code": NAME}
ANSWERED = ("completed", "incomplete")
"""The statuses of a response that holds a whole answer, or the beginning of one."""


def check_response(response: Json, status: str | None = None) -> list[Violation]:
    """Check a response object that ought to have ``status``, by default the one that it has."""
    return list(_check_response(response, str(response.get("status")) if status is None else status))


def _check_response(response: Json, status: str) -> Iterator[Violation]:
    for words in misfits(response, RESPONSE_MEMBERS):
        yield Violation("response-shape", f"response: {words}")
    if response.get("object") not in (None, "response"):
        yield Violation("response-shape", "response: 'object' is not \"response\"")
    yield from _check_settings(response)
    # Servers older than the member leave it out.
    if "completed_at" in response and COUNT.fits(response["completed_at"]) != (status == "completed"):
        yield Violation("completed-at", f"completed_at is {response['completed_at']!r:.40}, the status {status}")
    details = response.get("incomplete_details")
    if (isinstance(details, dict) and NAME.fits(details.get("reason"))) != (status == "incomplete"):
        yield Violation("incomplete-details", f"incomplete_details is {details!r:.80}, the status {status}")
    yield from _check_failure(response.get("error"), status)
    if status in ANSWERED:
        yield from _check_usage(response.get("usage"))
        if ARRAY.fits(response.get("output")):
            yield from _check_output(response["output"], status)


def _check_settings(response: Json) -> Iterator[Violation]:
    if missing := [name for name in REQUIRED if name not in response]:
        yield Violation("response-members", f"response: {', '.join(missing)} missing")
    for words in misfits(response, {name: kind for name, kind in SETTINGS.items() if name in response}):
        yield Violation("response-members", f"response: {words}")


def _check_failure(error: Any, status: str) -> Iterator[Violation]:
    told = isinstance(error, dict) and not misfits(error, {"code": NAME, "message": STRING})
    if told != (status == "failed"):
        yield Violation("response-error", f"error is {error!r:.80}, the status {status}")


def _check_usage(usage: Any) -> Iterator[Violation]:
    if not isinstance(usage, dict):
        yield Violation("usage-shape", "usage is not an object")
        return
    faults = misfits(usage, USAGE_MEMBERS)
    for words in faults:
        yield Violation("usage-shape", f"usage: {words}")
    if not faults and usage["total_tokens"] != usage["input_tokens"] + usage["output_tokens"]:
        yield Violation("usage-total", "total_tokens is not the sum of input_tokens and output_tokens")
    if not faults and not any(usage[name] for name in USAGE_MEMBERS):
        yield Violation("usage-counted", "input_tokens, output_tokens and total_tokens are 0")
    for whole, name in [("input_tokens", "cached_tokens"), ("output_tokens", "reasoning_tokens")]:
        details = usage.get(f"{whole}_details")
        if not isinstance(details, dict) or misfits(details, {name: COUNT}):
            yield Violation("usage-details", f"{whole}_details has no {name}")
        elif COUNT.fits(usage.get(whole)) and details[name] > usage[whole]:
            yield Violation("usage-details", f"more {name} than {whole}")


def _check_output(output: list[Any], status: str) -> Iterator[Violation]:
    if not output and status == "completed":
        yield Violation("answer-not-empty", "output is empty")
    for at, item in enumerate(output):
        yield from check_item(item, f"output[{at}]")
    items = [item for item in output if isinstance(item, dict)]
    for rule, name in [("item-id", "id"), ("call-id", "call_id")]:
        for twice in _repeated(item.get(name) for item in items):
            yield Violation(rule, f"two items have the {name} {twice!r:.80}")
    for at, item in enumerate(items):
        yield from _check_item_status(item, at, status, last=at == len(items) - 1)
        if item.get("type") == "function_call" and item.get("status") == "completed" and not _is_object(item):
            yield Violation("arguments-json", f"output[{at}]: the arguments are not a JSON object")


def check_item(item: Any, path: str) -> Iterator[Violation]:
    """Check that an item has the members of its type; ``path`` is how the message calls it."""
    if not isinstance(item, dict):
        yield Violation("item-shape", f"{path} is not an object")
        return
    kind = item.get("type")
    members = ITEM_MEMBERS.get(kind, OTHER_ITEM_MEMBERS) if isinstance(kind, str) else OTHER_ITEM_MEMBERS
    for words in misfits(item, members):
        yield Violation("item-shape", f"{path}: {words}")
    for holder in ("content", "summary"):
        kinds = PARTS_OF.get((str(kind), holder))
        parts = item.get(holder)
        if kinds is not None and isinstance(parts, list):
            yield from _check_parts(parts, kinds, f"{path}.{holder}")
        elif kinds is not None and parts is not None and holder not in members:
            yield Violation("item-shape", f"{path}: '{holder}' is not an array")


def _check_parts(parts: list[Any], kinds: set[str], path: str) -> Iterator[Violation]:
    for at, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in kinds:
            yield Violation("part-type", f"{path}[{at}] is not {' or '.join(sorted(kinds))}")
            continue
        for words in misfits(part, PART_MEMBERS[kind]):
            yield Violation("part-shape", f"{path}[{at}]: {words}")


def _check_item_status(item: Json, at: int, response_status: str, *, last: bool) -> Iterator[Violation]:
    status = item.get("status")
    if status is None:
        # Where it has to be there, the item's shape tells.
        return
    # Items of hosted tools have statuses of their own; none of them goes on in an answer.
    known = str(item.get("type")) in ITEM_MEMBERS
    unfinished = status not in ANSWERED or (response_status == "completed" and status != "completed")
    if unfinished if known else status == "in_progress":
        yield Violation("item-status", f"output[{at}] is {status!r:.40} in a response that is {response_status}")
    elif status == "incomplete" and not last:
        yield Violation("incomplete-last", f"output[{at}] is incomplete, but not the last item")


def _is_object(call: Json) -> bool:
    try:
        return isinstance(json.loads(call["arguments"]), dict)
    except (KeyError, TypeError, ValueError, RecursionError):
        return False


def _repeated(values: Iterable[Any]) -> list[str]:
    counts = Counter(value for value in values if isinstance(value, str))
    return [value for value, count in counts.items() if count > 1]


def check_error_body(body: bytes) -> Iterator[Violation]:
    """Check the body of a plain HTTP error."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    error = document.get("error") if isinstance(document, dict) else None
    for words in _error_faults(error):
        yield Violation("error-body", words)


def check_error_event(data: Json) -> Iterator[Violation]:
    """Check the data of an ``error`` event: clients read the flat form or the nested one, so it needs both."""
    nested: Any = data.get("error")
    flat = [
        f"'{name}' is not the same flat and in 'error'"
        for name in ("code", "message", "param")
        if isinstance(nested, dict) and (name not in data or data[name] != nested.get(name))
    ]
    for words in _error_faults(nested) or flat:
        yield Violation("error-event", words)


def _error_faults(error: Any) -> list[str]:
    if not isinstance(error, dict):
        return ["'error' is not an object"]
    faults = [f"error: {words}" for words in misfits(error, ERROR_MEMBERS)]
    if "param" not in error or not (error["param"] is None or isinstance(error["param"], str)):
        faults.append("error: 'param' is neither null nor a string")
    return faults
