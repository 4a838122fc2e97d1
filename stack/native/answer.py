"""From steps to the response object, and to the events that lead there, as OpenAI's endpoint has them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from stack.native.script import Json, Step

CREATED_AT = 1_790_000_000


class Answer:
    """One answer under way. ``response`` is its response object, which grows with the steps."""

    def __init__(self, body: Mapping[str, Any], number: int) -> None:
        """``number`` makes its ids."""
        self._encrypts = "reasoning.encrypted_content" in (body.get("include") or ())
        self._ids = (f"{number:04d}{count:04d}" for count in itertools.count())
        self._sequence = itertools.count()
        self._words = 0
        self._usage: Json | None = None
        self.response: Json = {
            "id": f"resp_upstream{next(self._ids)}",
            "object": "response",
            "created_at": CREATED_AT,
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "max_tool_calls": body.get("max_tool_calls"),
            "metadata": body.get("metadata") or {},
            "model": f"{body.get('model')}-2026-01-01",
            "output": [],
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": body.get("previous_response_id"),
            "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
            "safety_identifier": body.get("safety_identifier"),
            "service_tier": "default",
            "store": body.get("store", True),
            "temperature": body.get("temperature", 1.0),
            "text": body.get("text") or {"format": {"type": "text"}, "verbosity": "medium"},
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools") or [],
            "top_logprobs": 0,
            "top_p": body.get("top_p", 1.0),
            "truncation": body.get("truncation", "disabled"),
            "usage": None,
            "user": body.get("user"),
            "an_unknown_member": {"kept": True},
        }

    def begin(self) -> Iterator[bytes]:
        """The events before the first item."""
        yield self._event("response.created", response=self.response)
        yield self._event("response.in_progress", response=self.response)

    def play(self, step: Step) -> Iterator[bytes]:
        """The events of one step that makes an item or is an event."""
        if isinstance(step, str):
            yield from self._message("output_text", "text", step)
            return
        ((name, value),) = step.items()
        match name:
            case "refusal":
                yield from self._message("refusal", "refusal", value)
            case "reasoning":
                yield from self._reasoning(value)
            case "call":
                yield from self._call("function_call", "function_call_arguments", "arguments", value)
            case "custom":
                yield from self._call("custom_tool_call", "custom_tool_call_input", "input", value)
            case "item":
                yield from self._item({"id": f"x_{next(self._ids)}", **value})
            case "search":
                yield from self._search(value)
            case "event":
                yield self._event(**value)
            case "raw":
                yield value.encode()
            case "usage":
                self._usage = value

    def error(self, error: Json) -> Iterator[bytes]:
        """The events of an answer that fails."""
        yield self._event("error", error={"type": "server_error", "param": None, **error})
        self._end("failed", error={"code": error["code"], "message": error["message"]})
        yield self._event("response.failed", response=self.response)

    def end(self, incomplete: str | None = None) -> Iterator[bytes]:
        """The last event."""
        if incomplete is None:
            self._end("completed", completed_at=CREATED_AT + 1)
        else:
            self._end("incomplete", incomplete_details={"reason": incomplete})
        yield self._event(f"response.{self.response['status']}", response=self.response)

    def _end(self, status: str, **members: Any) -> None:
        usage = {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": self._words,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 11 + self._words,
        }
        self.response |= {"status": status, "usage": self._usage or usage, **members}

    def _message(self, kind: str, member: str, text: str) -> Iterator[bytes]:
        item: Json = {"id": f"msg_{next(self._ids)}", "type": "message", "status": "in_progress", "role": "assistant"}
        part: Json = {"type": kind, member: ""}
        if kind == "output_text":
            part |= {"annotations": [], "logprobs": []}
        place = {"item_id": item["id"], "output_index": len(self.response["output"])}
        yield self._event("response.output_item.added", output_index=place["output_index"], item=item | {"content": []})
        yield self._event("response.content_part.added", **place, content_index=0, part=part)
        for word in _words(text):
            self._words += 1
            yield self._event(f"response.{kind}.delta", **place, content_index=0, delta=word, obfuscation="xYz")
        yield self._event(f"response.{kind}.done", **place, content_index=0, **{member: text})
        yield self._event("response.content_part.done", **place, content_index=0, part=part | {member: text})
        yield from self._done(item | {"status": "completed", "content": [part | {member: text}]})

    def _reasoning(self, text: str) -> Iterator[bytes]:
        item: Json = {"id": f"rs_{next(self._ids)}", "type": "reasoning", "summary": []}
        encrypted = {"encrypted_content": f"gAAAA{item['id']}"} if self._encrypts else {}
        place = {"item_id": item["id"], "output_index": len(self.response["output"]), "summary_index": 0}
        part = {"type": "summary_text", "text": ""}
        yield self._event("response.output_item.added", output_index=place["output_index"], item=item | encrypted)
        yield self._event("response.reasoning_summary_part.added", **place, part=part)
        for word in _words(text):
            self._words += 1
            yield self._event("response.reasoning_summary_text.delta", **place, delta=word)
        yield self._event("response.reasoning_summary_text.done", **place, text=text)
        yield self._event("response.reasoning_summary_part.done", **place, part=part | {"text": text})
        yield from self._done(item | encrypted | {"summary": [part | {"text": text}]})

    def _call(self, kind: str, events: str, member: str, call: list[str]) -> Iterator[bytes]:
        name, text = call
        number = next(self._ids)
        item: Json = {"id": f"fc_{number}", "type": kind, "status": "in_progress", "call_id": f"call_{number}"}
        item |= {"name": name, member: ""}
        place = {"item_id": item["id"], "output_index": len(self.response["output"])}
        yield self._event("response.output_item.added", output_index=place["output_index"], item=item)
        for word in _words(text):
            self._words += 1
            yield self._event(f"response.{events}.delta", **place, delta=word, obfuscation="x")
        yield self._event(f"response.{events}.done", **place, **{member: text})
        yield from self._done(item | {"status": "completed", member: text})

    def _search(self, query: str) -> Iterator[bytes]:
        item: Json = {"id": f"ws_{next(self._ids)}", "type": "web_search_call", "status": "in_progress"}
        place = {"item_id": item["id"], "output_index": len(self.response["output"])}
        yield self._event("response.output_item.added", output_index=place["output_index"], item=item)
        for stage in ("in_progress", "searching", "completed"):
            yield self._event(f"response.web_search_call.{stage}", **place)
        yield from self._done(item | {"status": "completed", "action": {"type": "search", "query": query}})

    def _item(self, item: Json) -> Iterator[bytes]:
        yield self._event("response.output_item.added", output_index=len(self.response["output"]), item=item)
        yield from self._done(item)

    def _done(self, item: Json) -> Iterator[bytes]:
        yield self._event("response.output_item.done", output_index=len(self.response["output"]), item=item)
        self.response["output"].append(item)

    def _event(self, type: str, **members: Any) -> bytes:
        data = json.dumps({"type": type, "sequence_number": next(self._sequence), **members})
        return f"event: {type}\ndata: {data}\n\n".encode()


def _words(text: str) -> list[str]:
    """The words of a text, each with the space before it."""
    first, *others = text.split(" ")
    return [first, *(f" {word}" for word in others)]
