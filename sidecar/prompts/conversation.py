"""Input items as the turns of a chat template.

Clients send a flat list of items; templates know turns. Items of one assistant turn (reasoning, text, calls) become one
turn, the outputs of its calls follow it in the order of the calls, and whatever the template cannot take
(:class:`TemplateFeatures`) is written in a form that it can.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import Any, Literal

from sidecar.images.image import ImageRef
from sidecar.prompts.features import TemplateFeatures
from sidecar.prompts.template import Turn
from sidecar.prompts.tool_text import describe_tools, without_tool_turns
from sidecar.responses.body_bounds import MAX_VALUES, check_bounds
from sidecar.responses.errors import ApiError
from sidecar.responses.items import AssistantMessage, FunctionCall, FunctionCallOutput, InputMessage, ReasoningItem
from sidecar.responses.parts import InputImage, OutputText, ToolOutputPart
from sidecar.responses.request import ResponsesRequest

LateSystem = Literal["user", "leading"]
"""What a system message that the template does not take where it stands becomes: a user turn, or part of the first."""

LATE_SYSTEM_MARK = "[system]\n"
"""How a user turn begins that carries a system message which the template does not take where it stands."""

NO_QUESTION = "…"
"""What the user says before a greeting with which the assistant opens, where the template insists on a user first."""

NO_ANSWER = "…"
"""What the assistant says where the client sent no answer and the template insists on one."""


def to_turns(request: ResponsesRequest, features: TemplateFeatures, late_system: LateSystem = "user") -> list[Turn]:
    """The conversation of ``request``, whose calls and outputs are paired, as turns that ``features`` allow.

    Raises :class:`ApiError` ``invalid_request`` for an image that has no place in the prompt.
    """
    turns = _ItemReader(request, features).turns()
    if not features.tools:
        turns = without_tool_turns(turns)
    leading, turns = _split_leading_system(request, turns)
    if not features.late_system and late_system == "leading":
        leading += [turn["content"] for turn in turns if turn["role"] == "system" and turn["content"]]
        turns = [turn for turn in turns if turn["role"] != "system"]
    if not features.tools and (tools := to_tools(request)):
        leading.append(describe_tools(tools))
    if not features.late_system:
        turns = [_as_user(turn) if turn["role"] == "system" else turn for turn in turns]
    turns = _with_system_text("\n\n".join(leading), turns, features)
    if not features.assistant_first:
        turns = _with_question(turns)
    if not features.consecutive_users:
        turns = _merge_user_turns(turns)
    return turns if features.user_after_tool else _with_answers(turns)


def images_of(turns: Sequence[Turn]) -> list[ImageRef]:
    """The images in ``turns``, in the order in which the template places them."""
    parts = [part for turn in turns if isinstance(turn["content"], list) for part in turn["content"]]
    return [part["image"] for part in parts if part["type"] == "image"]


def to_tools(request: ResponsesRequest) -> list[dict[str, Any]]:
    """The request's tools in the shape of chat completions; none when ``tool_choice`` is ``none``."""
    if request.tool_choice == "none":
        return []
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.parameters or {"type": "object", "properties": {}},
            },
        }
        for tool in request.tools
    ]


@dataclass
class _AssistantTurn:
    """The items of one assistant turn, gathered until something else speaks."""

    reasoning: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    calls: list[FunctionCall] = field(default_factory=list)


class _ItemReader:
    """Groups a request's items into turns, in one pass."""

    def __init__(self, request: ResponsesRequest, features: TemplateFeatures) -> None:
        self._items = request.input
        self._features = features
        self._outputs = {
            item.call_id: (index, item)
            for index, item in enumerate(self._items)
            if isinstance(item, FunctionCallOutput)
        }
        self._turns: list[Turn] = []
        self._assistant = _AssistantTurn()
        self._calls_read = 0
        self._values_read = 0

    def turns(self) -> list[Turn]:
        """The turns, system messages still where the client put them."""
        users = (i for i, item in enumerate(self._items) if isinstance(item, InputMessage) and item.role == "user")
        last_user = max(users, default=-1)
        for index, item in enumerate(self._items):
            if isinstance(item, ReasoningItem):
                # Models are trained to see only the reasoning of the exchange that is still going on.
                if item.text and self._features.reasoning and index > last_user:
                    self._assistant.reasoning.append(item.text)
            elif isinstance(item, AssistantMessage):
                self._assistant.texts.append(_assistant_text(item))
            elif isinstance(item, FunctionCall):
                self._assistant.calls.append(item)
            else:
                self._end_assistant_turn()
                if isinstance(item, InputMessage):
                    self._turns.append(self._message(index, item))
        self._end_assistant_turn()
        return self._turns

    def _end_assistant_turn(self) -> None:
        ended, self._assistant = self._assistant, _AssistantTurn()
        if ended == _AssistantTurn():
            return
        turn: Turn = {"role": "assistant", "content": "\n\n".join(text for text in ended.texts if text)}
        if ended.reasoning:
            turn["reasoning_content"] = "\n\n".join(ended.reasoning)
        together = self._features.parallel_calls or not self._features.tools
        for calls in [ended.calls] if together else [[call] for call in ended.calls] or [[]]:
            self._turns.append(turn)
            if calls:
                self._add_calls(turn, calls)
            turn = {"role": "assistant", "content": ""}

    def _add_calls(self, turn: Turn, calls: Sequence[FunctionCall]) -> None:
        turn["tool_calls"] = []
        images: list[dict[str, Any]] = []
        for call in calls:
            self._calls_read += 1
            call_id = self._call_id(call)
            function = {"name": call.name, "arguments": self._arguments(call.arguments)}
            turn["tool_calls"].append({"id": call_id, "type": "function", "function": function})
            index, output = self._outputs[call.call_id]
            content = self._content(output.output, f"input[{index}].output")
            images += [part for part in content if part["type"] == "image"]
            self._turns.append(
                {"role": "tool", "content": _only_text(content), "tool_call_id": call_id, "name": call.name}
            )
        if images:
            # No template takes images in a tool turn.
            self._turns.append({"role": "user", "content": images})

    def _call_id(self, call: FunctionCall) -> str:
        if self._features.tools and not self._features.call_names:
            # As Kimi K2 writes them, counted through the conversation.
            return f"functions.{call.name}:{self._calls_read - 1}"
        return call.call_id if self._features.any_call_id else f"{self._calls_read:09d}"

    def _message(self, index: int, item: InputMessage) -> Turn:
        content = self._content(item.content, f"input[{index}].content")
        has_image = any(part["type"] == "image" for part in content)
        if item.role == "user":
            return {"role": "user", "content": content if has_image else _only_text(content)}
        if has_image:
            message = "Images are only accepted in user messages and in the outputs of tools."
            raise ApiError("invalid_request", message, f"input[{index}].content")
        return {"role": "system", "content": _only_text(content)}

    def _content(self, parts: Sequence[ToolOutputPart], path: str) -> list[dict[str, Any]]:
        """Parts for a template. Neighbouring texts are joined by a line break: templates put nothing between them."""
        content: list[dict[str, Any]] = []
        texts: list[str] = []
        for index, part in enumerate(parts):
            if not isinstance(part, InputImage):
                texts.append(part.text)
                continue
            if not self._features.images:
                raise ApiError("invalid_request", "This model takes text only, no images.", f"{path}[{index}]")
            content += _text_parts(texts)
            texts.clear()
            content.append({"type": "image", "image": ImageRef(f"{path}[{index}]", part.image_url)})
        return content + _text_parts(texts)

    def _arguments(self, text: str) -> Any:
        """A call's arguments in the form the template takes; text that is no JSON object stays text, or is wrapped."""
        arguments = self._parse_object(text)
        if arguments is None:
            return text if self._features.argument_text or not self._features.tools else {"arguments": text}
        return arguments if self._features.argument_objects or not self._features.tools else text

    def _parse_object(self, text: str) -> dict[str, Any] | None:
        # A string may hold as much as a body, and there are many: the bounds of a body hold for each and for all.
        try:
            self._values_read += check_bounds(text.encode())
        except ApiError:
            return None
        if self._values_read > MAX_VALUES:
            message = f"The arguments of the tool calls hold more than {MAX_VALUES} values."
            raise ApiError("invalid_request", message, "input")
        try:
            value = json.loads(text or "{}")
            # An escape in the text may stand for half a surrogate pair, which no prompt can hold.
            json.dumps(value, ensure_ascii=False).encode()
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


def _assistant_text(item: AssistantMessage) -> str:
    return "\n".join(part.text if isinstance(part, OutputText) else part.refusal for part in item.content)


def _only_text(content: Sequence[dict[str, Any]]) -> str:
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _split_leading_system(request: ResponsesRequest, turns: Sequence[Turn]) -> tuple[list[str], list[Turn]]:
    """The instructions and the texts of the system turns that open the conversation; and the turns after them."""
    first = next((index for index, turn in enumerate(turns) if turn["role"] != "system"), len(turns))
    texts = [request.instructions or "", *(turn["content"] for turn in turns[:first])]
    return [text for text in texts if text], list(turns[first:])


def _with_system_text(text: str, turns: list[Turn], features: TemplateFeatures) -> list[Turn]:
    """Put ``text`` first: as a system turn, else at the head of the first user turn."""
    if not text:
        return turns
    has_user = any(turn["role"] == "user" for turn in turns)
    if features.system and (has_user or features.system_alone):
        return [{"role": "system", "content": text}, *turns]
    return _merge_user_turns([{"role": "user", "content": text}, *turns[:1]]) + turns[1:]


def _as_user(turn: Turn) -> Turn:
    return {"role": "user", "content": LATE_SYSTEM_MARK + turn["content"]}


def _merge_user_turns(turns: Sequence[Turn]) -> list[Turn]:
    """The same turns, with user turns in a row made one; a blank line stands between their texts."""
    merged: list[Turn] = []
    for is_user, run in groupby(turns, key=lambda turn: turn["role"] == "user"):
        together = list(run)
        if is_user and len(together) > 1:
            merged.append({"role": "user", "content": _joined([turn["content"] for turn in together])})
        else:
            merged += together
    return merged


def _with_question(turns: list[Turn]) -> list[Turn]:
    """The same turns, with a user turn before an assistant turn that comes first, or right after the system turn."""
    first = next((index for index, turn in enumerate(turns) if turn["role"] != "system"), len(turns))
    if first == len(turns) or turns[first]["role"] != "assistant":
        return turns
    return [*turns[:first], {"role": "user", "content": NO_QUESTION}, *turns[first:]]


def _with_answers(turns: Sequence[Turn]) -> list[Turn]:
    """The same turns, with an assistant turn between a tool turn and a user turn."""
    answered: list[Turn] = []
    for turn in turns:
        if answered and turn["role"] == "user" and answered[-1]["role"] == "tool":
            answered.append({"role": "assistant", "content": NO_ANSWER})
        answered.append(turn)
    return answered


def _joined(contents: Sequence[str | list[dict[str, Any]]]) -> str | list[dict[str, Any]]:
    texts: list[Any] = list(takewhile(lambda content: isinstance(content, str), contents))
    text = "\n\n".join(texts)
    if len(texts) == len(contents):
        return text
    joined = _parts(text) if texts else []
    for content in contents[len(texts) :]:
        joined += [*_text_parts(["\n\n"] if joined else []), *_parts(content)]
    return joined


def _text_parts(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": "\n".join(texts)}] if texts else []


def _parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
