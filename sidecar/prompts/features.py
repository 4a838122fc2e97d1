"""What a chat template can take, found by rendering small conversations with it.

Templates do not declare what they support. Some raise on a second system message, some leave tools out silently, some
paste a Python list into the prompt where they met parts. Each probe below holds words that no template contains, and
asks whether they arrive in the prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sidecar.prompts.template import ChatTemplate, TemplateFailure, Turn

_SYSTEM: Turn = {"role": "system", "content": "probe-system"}
_LATE: Turn = {"role": "system", "content": "probe-late"}
_USER: Turn = {"role": "user", "content": "probe-user"}
_SECOND: Turn = {"role": "user", "content": "probe-second"}
_ANSWER: Turn = {"role": "assistant", "content": "probe-answer"}
_IMAGE: Turn = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "probe-user"}]}
_TEXT_PART: Turn = {"role": "user", "content": [{"type": "text", "text": "probe-user"}]}
_FURTHER_GRADES = ("none", "minimal", "xhigh")
_CALL_ID = "probe0001"
_SECOND_CALL_ID = "probe0002"
_OBJECT: Any = {"probe_argument": "probe-value"}
_TEXT: Any = '{"probe_argument": "probe-value"}'
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "probe-description",
        "parameters": {"type": "object", "properties": {"probe_argument": {"type": "string"}}},
    },
}


@dataclass(frozen=True)
class TemplateFeatures:
    """What a template takes as it is. For whatever it does not, the conversation is written another way."""

    system: bool
    """A system message at the start."""
    late_system: bool
    """System messages after the first turn."""
    system_alone: bool
    """A conversation without a user turn."""
    consecutive_users: bool
    """Two user turns in a row."""
    tools: bool
    """Tool definitions, an assistant's calls, and tool turns with their results."""
    argument_objects: bool
    """A call's arguments as an object (preferred)."""
    argument_text: bool
    """A call's arguments as JSON text."""
    parallel_calls: bool
    """Several calls in one assistant turn."""
    user_after_tool: bool
    """A user turn after a tool turn, without an answer between them."""
    any_call_id: bool
    """Call ids of any form; some templates insist on nine letters and digits."""
    call_names: bool
    """The name of a call; some templates write its id alone, which then has to hold the name."""
    reasoning: bool
    """``reasoning_content`` of an assistant turn after the last user turn."""
    images: bool
    """User content as a list of text and image parts."""
    thinking_switch: bool
    """A variable that turns reasoning on and off."""
    grades: frozenset[str]
    """The values of ``reasoning_effort`` that mean something; none where the template does not read it."""
    assistant_first: bool
    """An assistant turn before any user turn."""


def detect_features(template: ChatTemplate) -> TemplateFeatures:
    """Probe a template; some twenty short renders. Raises :class:`ValueError` when it cannot show one user turn."""
    if not _shows(template, [_USER], "probe-user"):
        raise ValueError("the chat template does not render a lone user turn")
    argument_objects = _takes_call(template, _OBJECT)
    argument_text = _takes_call(template, _TEXT)
    arguments = _OBJECT if argument_objects else _TEXT
    calls = _call(arguments)
    both_calls = calls | {"tool_calls": calls["tool_calls"] + _call(arguments, _SECOND_CALL_ID)["tool_calls"]}
    reasoning_call = calls | {"reasoning_content": "probe-reasoning"}
    reasoning_answer = _ANSWER | {"reasoning_content": "probe-reasoning"}
    return TemplateFeatures(
        system=_shows(template, [_SYSTEM, _USER], "probe-system", "probe-user"),
        late_system=_shows(template, [_SYSTEM, _USER, _ANSWER, _LATE, _SECOND], "probe-late", "probe-second")
        and _shows(template, [_USER, _LATE], "probe-late"),
        system_alone=_shows(template, [_SYSTEM], "probe-system"),
        consecutive_users=_shows(template, [_USER, _SECOND], "probe-user", "probe-second"),
        tools=(argument_objects or argument_text) and _shows(template, [_USER], "probe_tool", tools=[_TOOL]),
        argument_objects=argument_objects,
        argument_text=argument_text,
        parallel_calls=_shows(template, [_USER, both_calls, _result(), _result(_SECOND_CALL_ID)], "probe-result"),
        user_after_tool=_shows(template, [_USER, calls, _result(), _SECOND], "probe-result", "probe-second"),
        any_call_id=_takes_call(template, arguments, call_id="call_probe-0001"),
        call_names=_shows(template, [_USER, calls, _result()], "probe_tool"),
        reasoning=_shows(template, [_USER, reasoning_call, _result()], "probe-reasoning")
        or _shows(template, [_USER, reasoning_answer], "probe-reasoning"),
        images=_takes_images(template),
        thinking_switch=template.has_thinking_switch,
        grades=_grades(template),
        assistant_first=_shows(template, [_ANSWER, _SECOND], "probe-answer", "probe-second"),
    )


def _call(arguments: Any, call_id: str = _CALL_ID) -> Turn:
    call = {"id": call_id, "type": "function", "function": {"name": "probe_tool", "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _result(call_id: str = _CALL_ID) -> Turn:
    return {"role": "tool", "content": "probe-result", "tool_call_id": call_id, "name": "probe_result"}


def _takes_call(template: ChatTemplate, arguments: Any, call_id: str = _CALL_ID) -> bool:
    rendered = _render(template, [_USER, _call(arguments, call_id), _result(call_id)], [_TOOL])
    words = ("probe_tool", "probe-value", "probe-result")
    # A template for objects shows text as a quoted string; one for text shows an object as Python writes it.
    garbled = ('\\"probe_argument', "'probe_argument'")
    return all(word in rendered for word in words) and not any(sign in rendered for sign in garbled)


def _takes_images(template: ChatTemplate) -> bool:
    with_image = _render(template, [_IMAGE])
    without = _render(template, [_TEXT_PART])
    written_out = "'type'" in with_image or '"type"' in with_image
    return "probe-user" in with_image and with_image != without and not written_out


def _grades(template: ChatTemplate) -> frozenset[str]:
    """The grades by which templates that know any know one another, and those further ones that this one names."""
    low, high = (_render(template, [_USER], effort=effort) for effort in ("low", "high"))
    if low == high:
        return frozenset()
    named = {grade for grade in _FURTHER_GRADES if f"'{grade}'" in template.source or f'"{grade}"' in template.source}
    return frozenset({"low", "medium", "high"}) | named


def _shows(template: ChatTemplate, turns: list[Turn], *words: str, tools: list[dict[str, Any]] | None = None) -> bool:
    rendered = _render(template, turns, tools)
    return all(word in rendered for word in words)


def _render(
    template: ChatTemplate, turns: list[Turn], tools: list[dict[str, Any]] | None = None, effort: str | None = None
) -> str:
    """The prompt, or an empty one where the template fails; where it is told an ``effort``, reasoning is on."""
    now = datetime(2000, 1, 1, tzinfo=UTC)
    thinking = None if effort is None else True
    try:
        return template.render(turns, tools or (), now=now, enable_thinking=thinking, reasoning_effort=effort)
    except TemplateFailure:
        return ""
