"""What single probes expect of the final response, beyond what every response has to be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema

from conformance.probe import FinalCheck
from conformance.rules import Violation
from conformance.shapes import Json


def limit_is_kept(limit: int) -> FinalCheck:
    """The answer has at most ``limit`` tokens."""

    def check(response: Json) -> Iterator[Violation]:
        usage = response.get("usage")
        tokens = usage.get("output_tokens") if isinstance(usage, dict) else None
        if isinstance(tokens, int) and tokens > limit:
            yield Violation("output-limit", f"{tokens} output tokens, {limit} were allowed")
        details = response.get("incomplete_details")
        if isinstance(details, dict) and details.get("reason") != "max_output_tokens":
            yield Violation("output-limit", f"the answer was cut because of {details.get('reason')!r:.40}")

    return check


def metadata_is_echoed(metadata: Mapping[str, str]) -> FinalCheck:
    """The response has the request's ``metadata``."""

    def check(response: Json) -> Iterator[Violation]:
        if response.get("metadata") != metadata:
            yield Violation("metadata-echo", f"metadata came back as {response.get('metadata')!r:.80}")

    return check


def calls_are_made(tool: Json, *, demanded: bool, single: bool = False) -> FinalCheck:
    """The calls of the answer are calls of ``tool``: one at least if ``demanded``, one at most if ``single``."""

    def check(response: Json) -> Iterator[Violation]:
        calls = function_calls(response.get("output"))
        if demanded and not calls and response.get("status") == "completed":
            yield Violation("demanded-call", "the answer is completed and has no function_call")
        if single and len(calls) > 1:
            yield Violation("single-call", f"{len(calls)} calls with parallel_tool_calls false")
        for call in calls:
            if call.get("name") != tool["name"]:
                yield Violation("known-tool", f"a call names {call.get('name')!r:.80}")
            elif call.get("status") == "completed" and _is_strict(response, tool["name"]):
                yield from _arguments_fit(call, tool["parameters"])

    return check


def answer_fits(schema: Json) -> FinalCheck:
    """The text of a completed answer is one JSON value that fits ``schema``."""

    def check(response: Json) -> Iterator[Violation]:
        if response.get("status") != "completed":
            return
        text = _text(response.get("output"))
        if (fault := _misfit(text, schema)) is not None:
            yield Violation("structured-output", f"the text {text!r:.80} {fault}")

    return check


def function_calls(output: Any) -> list[Json]:
    """The function calls among the items of an output."""
    items = output if isinstance(output, list) else []
    return [item for item in items if isinstance(item, dict) and item.get("type") == "function_call"]


def _is_strict(response: Json, name: str) -> bool:
    """Whether the response says that the arguments of the tool ``name`` were held to its schema."""
    tools = response.get("tools")
    return any(
        isinstance(tool, dict) and tool.get("name") == name and tool.get("strict") is True
        for tool in (tools if isinstance(tools, list) else [])
    )


def _arguments_fit(call: Json, schema: Json) -> Iterator[Violation]:
    arguments = call.get("arguments")
    # Arguments that are no JSON object break a rule of their own.
    if isinstance(arguments, str) and (fault := _misfit(arguments, schema)) == _UNFIT:
        yield Violation("strict-arguments", f"the arguments {arguments!r:.80} {fault}")


_UNFIT = "does not fit the schema"


def _misfit(text: str, schema: Json) -> str | None:
    """Why ``text`` is not JSON that fits ``schema``; ``None`` where it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "is not JSON"
    return None if jsonschema.Draft202012Validator(schema).is_valid(value) else _UNFIT


def _text(output: Any) -> str:
    """The text of all messages of an output."""
    items = output if isinstance(output, list) else []
    messages = [item for item in items if isinstance(item, dict) and item.get("type") == "message"]
    parts = [part for item in messages if isinstance(item.get("content"), list) for part in item["content"]]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))
